"""Coding-agent CLIs: how each CLI is called, how its output is read, and how its runs survive the worker."""
