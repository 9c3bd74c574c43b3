"""How a client or a worker reaches its Temporal server, and how values cross to it."""
