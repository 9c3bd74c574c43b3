"""The start of a sandbox around a program, and the exit code of the program.

Bubblewrap ends with the program's exit code, or with 128 plus the number of the signal that killed the program.
Before the program starts, bubblewrap writes the pid of the sandbox's first process to the file `sandbox.json`. At
the end, bubblewrap adds an exit code if the program had started.
"""

import errno
import os
import re
from collections.abc import Sequence

from septet.agents.processes.order import Confinement
from septet.agents.processes.own_user import StagedFiles

REPORT = "sandbox.json"
FIRST_PROCESS = re.compile(rb'"child-pid": *(\d+)')
SIGNAL_BASE = 128
LAST_SIGNAL = 64


class SandboxStart:
    """The command line that starts bubblewrap, and the descriptors that bubblewrap reads.

    Arguments that name the machine's folders come from a descriptor, because the guest can read the command line.
    """

    def __init__(
        self, confinement: Confinement, argv: Sequence[str], report: int | None = None, options: Sequence[str] = ()
    ) -> None:
        """Open the descriptors; bubblewrap writes its report to `report`, and `options` are further arguments."""
        self.descriptors: list[int] = []
        self.staged: StagedFiles | None = None
        if confinement.gives_up_root and os.geteuid() == 0:
            self.staged = StagedFiles(confinement.arguments)
        options = list(options)
        for path, text in confinement.texts.items():
            options += ["--perms", "0444", "--file", self.open_memory("text", os.fsencode(text)), path]
        if confinement.system_calls:
            options += ["--seccomp", self.open_memory("system-calls", bytes.fromhex(confinement.system_calls))]
        if report is not None:
            options += report_to(report)
        options += confinement.arguments if self.staged is None else self.staged.arguments
        arguments = self.open_memory("arguments", b"".join(os.fsencode(part) + b"\0" for part in options))
        program = confinement.program if self.staged is None else self.staged.place_program(confinement.program)
        self.argv = (program, "--args", arguments, "--", *argv)

    def open_memory(self, name: str, content: bytes) -> str:
        """Return the number, as text, of a new descriptor from which bubblewrap reads this content."""
        memory = os.memfd_create(name, 0)
        self.descriptors.append(memory)
        os.write(memory, content)
        os.lseek(memory, 0, os.SEEK_SET)
        return str(memory)

    def close(self) -> None:
        """Close the descriptors that were opened for bubblewrap."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def report_to(report: int) -> tuple[str, str]:
    """Return the arguments that make bubblewrap write its report to the descriptor `report`."""
    return ("--json-status-fd", str(report))


def exit_code_inside(code: int, report: bytes) -> int | None:
    """Return the exit code of the program in the sandbox, negative for a signal; `None` if it never started.

    `code` is bubblewrap's own exit code, which is negative if a signal killed bubblewrap and all processes inside.
    """
    if code < 0:
        return code
    if b'"exit-code"' not in report:
        return None
    return SIGNAL_BASE - code if SIGNAL_BASE < code <= SIGNAL_BASE + LAST_SIGNAL else code


def start_failure(stderr: bytes) -> str:
    """Return why bubblewrap could not start the program: the error's name and the last line of stderr."""
    line = stderr[-600:].strip().rpartition(b"\n")[2].decode("utf-8", "replace")
    name = next((name for number, name in errno.errorcode.items() if line.endswith(os.strerror(number))), "")
    return f"{name}: {line}" if name else line
