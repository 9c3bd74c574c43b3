"""The metrics, and the recorder of their values."""
