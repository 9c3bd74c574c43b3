"""The workflows that record amounts: accounts of budgets, costs of projects, pauses of logins."""
