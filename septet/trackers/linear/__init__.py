"""Linear: its issues, and the sessions in which people talk with its agents."""
