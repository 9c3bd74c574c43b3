"""The accounts of budgets, which permit turns and count the turns' use, and a host's notes on such turns."""
