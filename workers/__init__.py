"""The workers: their parts, their start and their end."""
