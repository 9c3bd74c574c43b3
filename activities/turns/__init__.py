"""Prepare, pay for, guard and carry out a turn, which is all agent runs for one prompt."""
