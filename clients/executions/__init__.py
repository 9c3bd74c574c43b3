"""Read and query workflows on the Temporal server: lists, histories, queries and updates."""
