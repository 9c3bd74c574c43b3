"""A guest's only way to the network: its rules, the model ports, and the log."""
