"""The engine's branches, commits and pushes."""
