"""Trackers on loopback: real HTTP, with state, and refusals as the real ones word them."""
