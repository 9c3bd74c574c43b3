"""How `septet` is typed on this machine, for commands that people paste."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path


def septet_here(environ: Mapping[str, str]) -> str:
    """Return how `septet` is typed in this terminal: by its path where it is not on PATH."""
    return "septet" if shutil.which("septet", path=environ.get("PATH")) else _own_path()


def septet_elsewhere(environ: Mapping[str, str]) -> str:
    """Return how `septet` is typed in another terminal, in which no virtual environment is active."""
    active = environ.get("VIRTUAL_ENV", "")
    found = shutil.which("septet", path=environ.get("PATH"))
    is_everywhere = found is not None and not (active and Path(found).is_relative_to(active))
    return "septet" if is_everywhere else _own_path()


def _own_path() -> str:
    return shlex.quote(str(Path(sys.executable).parent / "septet"))
