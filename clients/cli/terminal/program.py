"""The word for `septet` on this machine, for commands that people paste."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from septet.settings import Settings


def septet_here(environ: Mapping[str, str]) -> str:
    """Return the word for `septet` in this terminal: its path if it is not on PATH."""
    return "septet" if shutil.which("septet", path=environ.get("PATH")) else _own_path()


def septet_elsewhere(settings: "Settings") -> str:
    """Return the word for `septet` in another terminal, which lacks this process's variables."""
    environ = settings.environ
    active = environ.get("VIRTUAL_ENV", "")
    found = shutil.which("septet", path=environ.get("PATH"))
    is_everywhere = found is not None and not (active and Path(found).is_relative_to(active))
    is_named = "state_dir" in settings.model_fields_set
    state = f"SEPTET_STATE_DIR={shlex.quote(str(settings.state_dir))} " if is_named else ""
    return f"{state}{'septet' if is_everywhere else _own_path()}"


def _own_path() -> str:
    return shlex.quote(str(Path(sys.executable).parent / "septet"))
