"""What this host's state directory has of work orders: runs, logs, commits, rescues and workspaces."""
