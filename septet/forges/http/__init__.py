"""Requests to forges and trackers: one HTTP client, limits of answers, pauses, and errors with a remedy."""
