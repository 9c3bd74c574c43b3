"""Common code of the programs around an agent: orders, users, limits, sandboxes and process trees."""
