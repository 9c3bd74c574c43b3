"""A work order that a person watches: its picture, and the question on its plan."""
