"""Forges of issues and pull requests: `github`, `gitlab`, `gitea`, and `local` (a repository on disk)."""
