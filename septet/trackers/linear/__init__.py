"""Linear: issues, and the sessions in which people talk with agents."""
