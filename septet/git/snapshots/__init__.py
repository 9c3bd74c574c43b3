"""Snapshots: the complete state of a workspace, kept out of the reach of agents."""
