"""The typed clients of work orders and pipelines, and all else that is asked of the Temporal server."""
