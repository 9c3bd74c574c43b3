"""Keys: the scanner that finds them in new lines, and the keys that seal texts and files."""
