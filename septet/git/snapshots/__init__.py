"""Snapshots: the complete state of a workspace, kept where no agent can reach it."""
