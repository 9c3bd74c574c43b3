"""Take issues, and obey commands in comments."""
