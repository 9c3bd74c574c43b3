"""The chaos program on pipelines: many issues, warm agents, and a hand that kills any process at any point."""
