"""The `claude` CLI, and `scripted`, which has the same command line and stream."""
