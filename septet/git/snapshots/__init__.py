"""Take, restore and forget snapshots: complete states of workspaces, out of the reach of agents."""
