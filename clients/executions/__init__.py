"""Workflows as the server shows them: rows of the index, histories, queries and updates."""
