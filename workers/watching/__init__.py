"""Checks and reports that a worker repeats while it runs activities."""
