"""The context of an activity: its host, its attempt, the check before each effect, and errors."""
