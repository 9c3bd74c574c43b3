"""What a supervisor knows of the sandbox around its agent: how the program inside ended.

Bubblewrap ends with the program's exit code, or 128 and the number of the signal that killed it. By JSON on a
descriptor, which goes to the file `sandbox.json`, it reports the pid of the sandbox's first process, before
anything starts in it, and an exit code only when the program had started.
"""

import errno
import os

REPORT = "sandbox.json"
SIGNAL_BASE = 128
LAST_SIGNAL = 64
FAILURE_BYTES = 600


def add_report(argv: tuple[str, ...], descriptor: int) -> tuple[str, ...]:
    """Return the arguments of a bubblewrap that reports on a descriptor."""
    return (argv[0], "--json-status-fd", str(descriptor), *argv[1:])


def exit_code_inside(code: int, report: bytes) -> int | None:
    """Return how the program inside ended, negative for a signal; `None` when it never started.

    Args:
        code: How bubblewrap ended; negative when it was killed itself, and with it all that was inside.
        report: What it reported.
    """
    if code < 0:
        return code
    if b'"exit-code"' not in report:
        return None
    return SIGNAL_BASE - code if SIGNAL_BASE < code <= SIGNAL_BASE + LAST_SIGNAL else code


def start_failure(stderr: bytes) -> str:
    """Return the last line of a bubblewrap that could not start the program, after the name of its cause."""
    line = stderr[-FAILURE_BYTES:].strip().rpartition(b"\n")[2].decode("utf-8", "replace")
    name = next((name for number, name in errno.errorcode.items() if line.endswith(os.strerror(number))), "")
    return f"{name}: {line}" if name else line
