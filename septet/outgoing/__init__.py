"""Cleans an agent's text for a forge: removes text that acts in the worker's name, and invisible text."""
