"""Search and clean outgoing content, and prepare the content for the reader, a second agent."""
