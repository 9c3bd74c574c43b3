"""Hosts and their workspaces: opened, set up, moved and swept."""
