"""Common code of the programs around an agent: supervisors' orders, users, limits, sandboxes and process trees."""
