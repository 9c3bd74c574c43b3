"""The values that clients, workflows and workers exchange: immutable, strict, and the same everywhere."""
