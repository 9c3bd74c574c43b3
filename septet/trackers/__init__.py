"""Trackers of issues whose code is on a forge."""
