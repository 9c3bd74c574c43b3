"""GitLab, of any address."""
