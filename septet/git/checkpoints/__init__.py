"""Snapshots on a remote, from which another host opens a workspace."""
