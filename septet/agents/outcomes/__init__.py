"""From what a CLI prints to one outcome for all CLIs: streams, endings, API errors, transcripts."""
