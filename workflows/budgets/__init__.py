"""The workflows that keep amounts: accounts of budgets, costs of projects, pauses of logins."""
