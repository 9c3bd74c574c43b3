"""The agent CLIs: a folder for each, and what their adapters share."""
