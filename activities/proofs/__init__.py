"""What proves each step: one module for each, and the table of all."""
