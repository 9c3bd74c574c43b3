"""The mirror of a repository, and the workspaces that borrow its objects."""
