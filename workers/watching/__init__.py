"""What a worker looks at again and again beside its activities."""
