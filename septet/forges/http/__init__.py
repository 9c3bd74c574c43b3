"""Requests to forges and trackers: one HTTP client, limits for answers, pauses, and errors with a remedy."""
