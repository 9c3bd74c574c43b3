"""The `claude` CLI, and `scripted`, which speaks its language."""
