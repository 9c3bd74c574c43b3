"""The interfaces for people and programs: the CLI, the HTTP API, the MCP server and the page."""
