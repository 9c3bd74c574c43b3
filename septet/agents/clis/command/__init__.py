"""A program of the user's as an agent."""
