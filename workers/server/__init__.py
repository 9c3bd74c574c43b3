"""The embedded Temporal server, and the preparation of any server for work orders."""
