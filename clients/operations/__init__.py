"""The operations on work orders and pipelines, the same for the CLI, the API, the tools and the page."""
