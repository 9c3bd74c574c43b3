"""The commands about pipelines, their options and what they print."""
