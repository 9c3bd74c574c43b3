"""The checks that a worker repeats at the same time as its activities."""
