"""The forges of issues and pull requests: `github`, `gitlab`, `gitea`, and `local` for a repository on disk."""
