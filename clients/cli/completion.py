"""What the shell completes, from this host's disk alone: it is asked at each press of a key."""

from typing import Final

from septet.errors import SeptetError
from septet.settings import load_settings
from septet.state import StateDir

_SHOWN: Final = 200


def known_ids(incomplete: str) -> list[str]:
    """Return the work orders that have run on this host and begin with `incomplete`, newest first."""
    return _newest("runs", incomplete)


def known_pipelines(incomplete: str) -> list[str]:
    """Return the pipelines that this host keeps results of and that begin with `incomplete`, newest first."""
    return _newest("pipelines", incomplete)


def _newest(folder: str, incomplete: str) -> list[str]:
    try:
        root = StateDir(load_settings().state_dir).root / folder
        folders = [path for path in root.glob("*") if path.name.startswith(incomplete) and path.is_dir()]
        folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    except (OSError, SeptetError):
        return []
    return [path.name for path in folders[:_SHOWN]]
