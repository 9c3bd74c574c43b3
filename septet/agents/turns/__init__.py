"""Carrying out a turn of an agent: recovery, launch, following, sandbox, and the end."""
