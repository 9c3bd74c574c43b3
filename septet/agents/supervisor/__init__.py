"""The fork server and the supervisors: small programs.

They import nothing of ours but `septet.agents.processes` and `septet.agents.proxy`.

The fork server or the runner imports every module at its own start, and nothing after a fork: so no agent's start
pays for an import, and both programs continue while an upgrade moves these files.
"""

PROGRAM = __file__.rsplit("/", 1)[0] + "/start.py"
"""The program of the fork server and of a runner, for a Python of its own."""
AS_OWN_USER = __file__.rsplit("/", 1)[0] + "/as_own_user.py"
"""The program that starts bubblewrap for a trial, as a supervisor that is root does; for such a Python too."""
PYTHON_OPTIONS = ("-I", "-S", "-Xutf8")
"""The options of that Python: no packages, no environment variables, and text in UTF-8 as in orders."""
