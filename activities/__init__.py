"""Temporal's activities: steps and their finalizer, workspaces, intake, the board, and reports to people."""
