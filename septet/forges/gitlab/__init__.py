"""The forge GitLab, at gitlab.com or any other address."""
