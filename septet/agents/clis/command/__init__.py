"""The agent `command`: any program that the user configures."""
