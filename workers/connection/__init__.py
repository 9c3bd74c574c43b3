"""The connection to the Temporal server, and the conversion of values for it."""
