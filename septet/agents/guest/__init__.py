"""What a guest may see, reach and use: agents, and what a repository has run, such as its checks.

`description.py` puts it together from the small values in `protections.py`; `programs.py` says what a program
needs of the disk, `named_paths.py` what a worker's settings add, and `system_calls.py` what the kernel refuses.
"""
