"""The workflow of many issues: one agent plans them, and others carry out the plans."""
