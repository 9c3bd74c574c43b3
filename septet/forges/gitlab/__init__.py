"""GitLab, of any address, asked by python-gitlab."""
