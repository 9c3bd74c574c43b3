"""The fork server and the supervisors: small programs.

They import nothing of ours but `septet.agents.processes` and `septet.agents.proxy`.

All that they need is imported when the fork server or the runner starts, and nothing after a fork: so an import
costs one start and no agent's, and both continue while an upgrade moves these files.
"""

PROGRAM = __file__.rsplit("/", 1)[0] + "/start.py"
"""What runs the fork server, and a runner: given to a Python of its own."""
AS_OWN_USER = __file__.rsplit("/", 1)[0] + "/as_own_user.py"
"""What starts a bubblewrap as a supervisor that is root does, for a trial of it: given to such a Python too."""
PYTHON_OPTIONS = ("-I", "-S", "-Xutf8")
"""Of that Python: no packages, no variables of the environment, and text as the orders have it."""
