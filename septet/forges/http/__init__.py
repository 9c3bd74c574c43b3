"""How forges and trackers are asked: one HTTP client, bounds, pauses, and errors with a remedy."""
