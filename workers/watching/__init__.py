"""The checks that a worker repeats while it runs activities."""
