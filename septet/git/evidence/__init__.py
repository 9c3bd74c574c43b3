"""What git shows of an agent's changes, and the checks of these changes before they leave this host."""
