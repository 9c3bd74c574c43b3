"""The agent CLIs: a folder for each CLI, and the code that all adapters share."""
