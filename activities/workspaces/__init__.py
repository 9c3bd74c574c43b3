"""Open, set up, move and clean up the workspaces of hosts."""
