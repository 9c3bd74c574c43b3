"""Search and clean outgoing content, and prepare it for a second agent that reads it."""
