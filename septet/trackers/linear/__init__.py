"""Linear: its issues, and the conversations (*sessions*) of people with its agents."""
