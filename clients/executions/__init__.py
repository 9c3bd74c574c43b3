"""Workflows on the server: rows of the index, histories, queries and updates."""
