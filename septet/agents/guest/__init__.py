"""The files, network and kernel of guests: agents, and a repository's own programs, for example its checks.

`description.py` combines the small values of `world.py`; `programs.py` finds the files that a program needs,
`paths.py` reads the paths of a worker's settings, and `system_calls.py` makes the kernel's filter.
"""
