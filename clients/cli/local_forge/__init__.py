"""The commands for issues and pull requests of a repository on this machine: issue and pr."""
