"""From an agent's final text to a checked answer, and to the parts of its Markdown."""
