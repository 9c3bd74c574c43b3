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


def known_snapshots(incomplete: str) -> list[str]:
    """Return the rescues that this host keeps and that begin with `incomplete`."""
    from clients.disk.rescues import snapshots_of

    try:
        settings = load_settings()
        snapshots = snapshots_of(StateDir(settings.state_dir), settings.git_env, None, everything=False)
    except (OSError, SeptetError):
        return []
    return [each.snapshot for each in snapshots if each.snapshot.startswith(incomplete)][:_SHOWN]


def _newest(folder: str, incomplete: str) -> list[str]:
    try:
        root = StateDir(load_settings().state_dir).root / folder
        folders = [path for path in root.glob("*") if path.name.startswith(incomplete) and path.is_dir()]
        folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    except (OSError, SeptetError):
        return []
    return [path.name for path in folders[:_SHOWN]]
