"""Deterministic workflows: the order of the steps, and the consequence of each failure."""
