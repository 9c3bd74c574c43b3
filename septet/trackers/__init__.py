"""Trackers, such as Linear, of issues whose code is on a forge."""
