"""Take, restore and forget snapshots, which are complete states of workspaces."""
