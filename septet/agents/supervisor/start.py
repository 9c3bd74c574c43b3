"""The program that runs the fork server or a runner.

The file is short because Python compiles a program's main file at each start.
"""

import os
import sys

sys.path.append(__file__.rsplit("/", 4)[0])  # -I leaves the project off the path

from septet.agents.supervisor.fork_server import main

main(*sys.argv[1:])
os._exit(0)  # Python's own clean-up would copy the memory that supervisors share
