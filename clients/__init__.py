"""The interfaces for people and programs: command, HTTP API, MCP server, page, and typed clients."""
