"""Pipelines for all clients: the checks before a start, the client of Temporal, and views without a worker."""
