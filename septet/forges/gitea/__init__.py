"""Gitea and Forgejo, asked by a client that was generated from their OpenAPI."""
