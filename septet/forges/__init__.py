"""Where issues and pull requests live: `github`, or `local` (a bare repository on disk)."""
