"""What git says that an agent has changed, and what of it may leave this host."""
