"""The start of the process that forks supervisors.

It is short because Python compiles the file that it is given anew each time.
"""

import sys

sys.path.append(__file__.rsplit("/", 3)[0])  # -I leaves the project off the path

from septet.agents.nursery import main

main(*sys.argv[1:])
