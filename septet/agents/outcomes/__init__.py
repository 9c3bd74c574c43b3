"""The outcome of an agent run in one form for all CLIs: streams, endings, API errors, transcripts."""
