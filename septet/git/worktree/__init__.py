"""Read an agent's worktree as data, so that no file in it configures or starts anything."""
