"""What can be done with work orders and pipelines, the same for every face."""
