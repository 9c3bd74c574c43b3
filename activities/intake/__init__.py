"""Taking issues, and commands in comments."""
