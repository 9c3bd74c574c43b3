"""Requests to forges and trackers: one HTTP client, bounds, pauses, and errors with a remedy."""
