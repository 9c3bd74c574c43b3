"""Keys: the scanner that finds keys in new lines, and the keys that seal texts and files."""
