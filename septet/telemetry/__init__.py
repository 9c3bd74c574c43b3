"""Septet's metrics, and the recorder of their values."""
