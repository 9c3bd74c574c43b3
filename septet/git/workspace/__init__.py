"""The mirror of a repository, and the workspaces and lanes that borrow its objects."""
