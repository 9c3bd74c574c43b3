"""The forge of a repository on this machine."""
