"""The typed clients of work orders, pipelines, budgets and intakes, which call the Temporal server."""
