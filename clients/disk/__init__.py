"""Read what this host's state directory has on work orders: runs, logs, commits, rescues and workspaces."""
