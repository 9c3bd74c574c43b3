"""The live view of a work order, and the question on its plan."""
