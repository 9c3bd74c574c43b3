"""Start bubblewrap as an ordinary user, for a root worker that runs a guest without a supervisor.

The first argument is a JSON list of paths that the guest sees. Bubblewrap's command line follows.
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
