"""The programs that start agents: the fork server, the runner and the supervisors.

Of Septet, the programs import only `septet.agents.processes` and `septet.agents.proxy`.

The fork server or the runner imports every module at its start. A forked supervisor imports nothing, and continues
while an upgrade moves these files.
"""

PROGRAM = __file__.rsplit("/", 1)[0] + "/start.py"
"""The path of the program that a new Python runs as the fork server or a runner."""
AS_OWN_USER = __file__.rsplit("/", 1)[0] + "/as_own_user.py"
"""The path of the program with which a worker that is root tries to start bubblewrap as an ordinary user."""
PYTHON_OPTIONS = ("-I", "-S", "-Xutf8")
"""The options of the new Python: no packages, no environment variables, and text in UTF-8 as in orders."""
