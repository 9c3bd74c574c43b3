"""An agent's worktree, read as data: nothing in it configures or starts anything."""
