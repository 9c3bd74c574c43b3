"""Coding-agent CLIs: a folder for each CLI, one form of outcome, and runs that outlive a worker."""
