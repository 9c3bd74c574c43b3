"""GitHub and GitHub Enterprise."""
