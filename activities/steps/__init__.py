"""The steps: how each step checks its agent's claims and does Septet's part, and a table of all steps."""
