"""The commands for decisions on work orders, budgets, rescues, the local forge, and the documentation."""
