"""Check and estimate what a person or a program wants to start, and start it."""
