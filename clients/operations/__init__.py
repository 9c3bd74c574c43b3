"""The operations on work orders and pipelines, the same for the CLI, the HTTP API, the MCP tools and the page."""
