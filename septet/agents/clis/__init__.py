"""The agent CLIs: one module for each, one outcome for all."""
