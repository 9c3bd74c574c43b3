"""The measured promises of the project, and the program that measures them: `make bench`."""
