"""The commands that serve, such as `up` and `worker`, and commands for administrators, such as `promote`."""
