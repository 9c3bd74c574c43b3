"""The scanner that finds keys in added lines, and the keys that seal (encrypt) payloads and files."""
