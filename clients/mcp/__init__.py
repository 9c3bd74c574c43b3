"""The MCP server: the operations on work orders and pipelines as tools of an agent."""
