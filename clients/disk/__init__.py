"""Work orders in this host's state directory: runs, logs, commits, rescues and workspaces."""
