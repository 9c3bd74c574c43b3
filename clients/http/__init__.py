"""The HTTP API, with the same operations and replies as the CLI and the MCP server."""
