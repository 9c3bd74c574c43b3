"""The soak: hours of work under kills, during which nothing should grow."""
