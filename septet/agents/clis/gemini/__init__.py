"""The `gemini` CLI."""
