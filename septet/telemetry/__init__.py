"""Septet's metrics, and the recorder of the metrics' values."""
