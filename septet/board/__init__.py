"""The rules of the board: whose turn it is, and who would wait for ever."""
