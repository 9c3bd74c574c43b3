"""What a command prints and how it ends: streams, pager, browser, exit codes."""
