"""Coding-agent CLIs: one module for each, one outcome for all, and the runs that outlive a worker."""
