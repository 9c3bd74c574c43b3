"""The activities of the board and of the watches of pull requests."""
