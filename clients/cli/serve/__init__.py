"""The commands that serve, such as `up` and `worker`, and those for administrators, such as `promote`."""
