"""The HTTP API: the operations and replies of the CLI and the MCP server, under the paths that scripts use."""
