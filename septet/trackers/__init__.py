"""Trackers: where issues live whose code is on a forge."""
