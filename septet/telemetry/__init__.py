"""What is measured: the metrics, and where they are recorded."""
