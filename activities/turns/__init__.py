"""Prepare, pay for, guard and carry out a turn: the agent runs for one prompt."""
