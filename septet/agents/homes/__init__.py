"""A home for each work order: a CLI's own files, as in the user's home, without the user's own data."""
