"""Budget accounts, which permit turns and count what they use, and a host's notes about such turns."""
