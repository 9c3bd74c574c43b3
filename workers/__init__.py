"""The composition root: the parts of a worker, its start and its stop."""
