"""Budgets: the accounts, which permit turns and count their use, and a host's notes on permitted turns."""
