"""The fork server and the supervisors: small programs, which import nothing of ours outside this folder."""

PROGRAM = __file__.rsplit("/", 1)[0] + "/start.py"
"""What runs the fork server, and a runner: given to a Python of its own."""
