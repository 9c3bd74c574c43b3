"""The hosts of a workspace: activities there, and what follows when a host falls silent."""
