"""Start bubblewrap as a supervisor that is root starts guests, for a worker's trial of bubblewrap.

The arguments: the files as JSON, then bubblewrap's own arguments.
"""

import json
import os
import sys

sys.path.append(__file__.rsplit("/", 4)[0])  # -I leaves the project off the path

from septet.agents.processes.own_user import RunUser, StagedFiles

staged = StagedFiles(())
staged.sources = [(path, writable) for path, writable in json.loads(os.fsencode(sys.argv[1]))]
try:
    staged.become_user(RunUser())
    os.execve(sys.argv[2], sys.argv[2:], os.environ)
except OSError as error:
    sys.stderr.write(f"{error.filename}: {error.strerror}\n")
    sys.stderr.flush()
os._exit(1)
