"""Bubblewrap, found and tried; and the supervisors that start guests, as workers reach them."""
