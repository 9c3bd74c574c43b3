"""The composition root: what a worker is made of, how it starts and how it stops."""
