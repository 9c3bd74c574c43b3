"""Copies of snapshots on a remote, from which another host can open a workspace."""
