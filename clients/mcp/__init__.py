"""The MCP server: what there is to do with work orders, as tools of an agent."""
