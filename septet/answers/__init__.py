"""Read an agent's final text as a checked answer, and the parts of its Markdown."""
