"""What an activity is given: its host, its attempt, the fence before each effect, and errors."""
