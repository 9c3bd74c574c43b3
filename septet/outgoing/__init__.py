"""Clean an agent's text for a forge: remove text that acts in the worker's name, and invisible text."""
