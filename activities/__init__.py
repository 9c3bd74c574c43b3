"""Temporal's side effects: one activity for each step, one for the finalizer, one for workspaces."""
