"""The workflow of one issue, from its text to its pull request."""
