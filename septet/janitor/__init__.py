"""The janitor, which deletes workspaces, runs, snapshots and mirrors after their retention times."""
