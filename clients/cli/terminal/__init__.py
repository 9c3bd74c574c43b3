"""The output and the end of a command: streams, console, pager, exit codes, signals."""
