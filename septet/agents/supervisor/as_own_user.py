"""Start a bubblewrap as guests are started by a supervisor that is root: for a worker's trial of it.

Its arguments: the files as JSON, then the bubblewrap's own.
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
    os.execve(sys.argv[2], sys.argv[2:], os.environ)  # noqa: S606 -- no shell is the point
except OSError as error:
    print(f"{error.filename}: {error.strerror}", file=sys.stderr)  # noqa: T201 -- what the trial reads
os._exit(1)
