"""The commands that serve: up, worker, serve, mcp, runner; and promote, backup, codec, host-gone."""
