"""The server's answers to the board, and to work orders that wait for others."""
