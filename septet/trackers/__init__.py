"""Trackers such as Linear: a tracker has the issues, and a forge has the code."""
