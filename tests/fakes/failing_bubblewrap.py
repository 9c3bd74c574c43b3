"""A bubblewrap that cannot start, found first on PATH."""

import os

from fakes.septet_command import Septet


def failing_bubblewrap(septet: Septet) -> str:
    folder = septet.root / "bin"
    folder.mkdir(parents=True)
    (folder / "bwrap").write_text("#!/bin/sh\necho 'bwrap: no' >&2\nexit 1\n", encoding="utf-8")
    (folder / "bwrap").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
