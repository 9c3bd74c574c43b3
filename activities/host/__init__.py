"""The context of an activity: its host, its attempt, the fence before each effect, and errors."""
