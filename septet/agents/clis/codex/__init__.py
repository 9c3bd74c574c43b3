"""The `codex` CLI."""
