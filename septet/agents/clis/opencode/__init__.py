"""The `opencode` CLI."""
