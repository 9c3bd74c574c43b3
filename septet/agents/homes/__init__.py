"""A home for each work order: what a CLI has of its own in the user's home, without what is the user's alone."""
