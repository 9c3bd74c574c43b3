"""The connection of a client or worker to its Temporal server, and the conversion of values."""
