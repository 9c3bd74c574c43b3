"""Read an agent's final text as the checked answer of a step."""
