"""Open, set up, move and sweep the workspaces of hosts."""
