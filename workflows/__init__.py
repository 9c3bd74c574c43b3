"""Deterministic workflows: what happens in which order, and what follows from a failure."""
