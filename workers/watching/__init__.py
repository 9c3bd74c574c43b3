"""The repeated looks of a worker beside its activities."""
