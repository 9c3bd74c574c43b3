"""The workers: how a worker is put together, started and stopped."""
