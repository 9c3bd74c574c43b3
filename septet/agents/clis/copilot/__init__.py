"""The `copilot` CLI."""
