"""The soak: hours of work under kills, and what grows meanwhile, which should be nothing."""
