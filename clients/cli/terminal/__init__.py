"""The output and the end of a command: streams, pager, browser, exit codes."""
