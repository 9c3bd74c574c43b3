"""What all clients need of pipelines: the checks before a start, the typed client, and views without a worker."""
