"""The chaos program on pipelines: many issues, kept agents, and kills of any process at any moment."""
