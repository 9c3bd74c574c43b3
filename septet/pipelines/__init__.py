"""What a pipeline decides and keeps, without Temporal."""
