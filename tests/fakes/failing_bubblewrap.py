"""A bubblewrap that cannot start, found first on PATH."""

import os

from fakes.septet_command import Septet
from fakes.shell_programs import write_program


def failing_bubblewrap(septet: Septet) -> str:
    program = write_program(septet.root / "bin" / "bwrap", "#!/bin/sh\necho 'bwrap: no' >&2\nexit 1\n")
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"
