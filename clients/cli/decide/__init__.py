"""The commands for decisions and budgets, and for rescues, the local forge and the documentation."""
