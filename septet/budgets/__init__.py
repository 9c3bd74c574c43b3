"""Budgets: how a limit is written, and what an account grants and counts."""
