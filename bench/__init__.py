"""What the project promises in figures, and the program that measures it: `make bench`."""
