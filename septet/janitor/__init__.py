"""The janitor, which removes workspaces, runs, snapshots and mirrors after their retention times."""
