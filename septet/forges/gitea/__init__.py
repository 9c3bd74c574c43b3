"""The forges Gitea and Forgejo."""
