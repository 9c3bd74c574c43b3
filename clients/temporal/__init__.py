"""The typed clients of work orders and pipelines, and all other calls to the Temporal server."""
