"""The workflows of a queue and of its hosts: the board, and the passes of the janitor."""
