"""The mirror of a repository, and the workspaces and lanes that borrow the mirror's objects."""
