"""The start of the process that forks supervisors.

It is short because Python compiles the file that it is given anew each time.
"""

import os
import sys

sys.path.append(__file__.rsplit("/", 4)[0])  # -I leaves the project off the path

from septet.agents.supervisor.fork_server import main

main(*sys.argv[1:])
os._exit(0)  # a supervisor that took itself apart would copy the memory that it shares with all others
