"""The fork server and the supervisors: small programs.

The programs import nothing of Septet but `septet.agents.processes` and `septet.agents.proxy`.

The fork server or the runner imports every module at its own start, and nothing after a fork. So no import
delays the start of an agent, and both programs continue while an upgrade moves these files.
"""

PROGRAM = __file__.rsplit("/", 1)[0] + "/start.py"
"""The path of the program that a new Python runs as the fork server or a runner."""
AS_OWN_USER = __file__.rsplit("/", 1)[0] + "/as_own_user.py"
"""The path of the program that a new Python runs to try bubblewrap, as a supervisor that is root starts it."""
PYTHON_OPTIONS = ("-I", "-S", "-Xutf8")
"""The options of the new Python: no packages, no environment variables, and text in UTF-8 as in orders."""
