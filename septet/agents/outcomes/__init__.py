"""Read the output of any CLI as one form of outcome: streams, endings, API errors, transcripts."""
