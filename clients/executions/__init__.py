"""Read workflows on the Temporal server from lists, histories and queries, and send updates to workflows."""
