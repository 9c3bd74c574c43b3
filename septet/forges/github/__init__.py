"""The forges GitHub and GitHub Enterprise."""
