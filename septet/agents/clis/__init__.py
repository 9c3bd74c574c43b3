"""The agent CLIs: a folder for each, and the common parts of their adapters."""
