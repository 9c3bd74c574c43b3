"""The clients of work orders, the board, budgets, costs and intakes, which call the Temporal server."""
