"""The embedded Temporal server, and what any server must know before the first work order."""
