"""What a guest sees: files, network and kernel. Guests are agents, and a repository's programs such as checks.

`description.py` combines the parts from `world.py`. `programs.py` finds the files that a program needs, `paths.py`
reads the paths in a worker's settings, and `system_calls.py` makes the kernel's filter.
"""
