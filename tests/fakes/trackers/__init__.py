"""Trackers on loopback: real HTTP, state, and refusals in the real trackers' words."""
