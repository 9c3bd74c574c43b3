"""The typed clients of work orders, budgets and intakes, which call the Temporal server."""
