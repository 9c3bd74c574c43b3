"""The scanner that finds keys in new lines, and the keys that seal (encrypt) texts and files."""
