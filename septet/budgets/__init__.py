"""Budgets: the accounts, their grants and counts, and the held turns of a host."""
