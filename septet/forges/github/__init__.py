"""GitHub and GitHub Enterprise, asked by githubkit."""
