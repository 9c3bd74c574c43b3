"""Read an agent's worktree as data: no file of the worktree configures or starts anything."""
