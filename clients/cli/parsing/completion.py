"""Complete words for the shell; only this host's disk is read, because the shell needs an answer at once."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from clients.cli.commands import load
from clients.disk.rescues import snapshots_of
from septet.agents.scripted.scenario import built_in_scenarios
from septet.contracts.decisions import Target
from septet.contracts.names import AGENTS, Step
from septet.errors import SeptetError
from septet.settings import load_settings
from septet.state import StateDir

_SHOWN: Final = 200


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [str(name) for name in names if name.startswith(incomplete)]


def _newest(folder: str, incomplete: str) -> list[str]:
    """Return names of folders in the state directory's `folder` that begin with `incomplete`, newest first."""

    def changed_at(path: Path) -> float:
        return path.stat().st_mtime

    try:
        root = StateDir(load_settings().state_dir).root / folder
        folders = [path for path in root.glob("*") if path.name.startswith(incomplete) and path.is_dir()]
        folders.sort(key=changed_at, reverse=True)
    except (OSError, SeptetError):
        return []
    return [path.name for path in folders[:_SHOWN]]


ids = partial(_newest, "runs")
pipelines = partial(_newest, "pipelines")
agents = partial(_starting, AGENTS)
steps = partial(_starting, Step)
targets = partial(_starting, Target)


def scenarios(incomplete: str) -> list[str]:
    """Return the names of the scripted agent's built-in scenarios that begin with `incomplete`."""
    return _starting(built_in_scenarios(), incomplete)


def pages(incomplete: str) -> list[str]:
    """Return the names of the documentation's pages that begin with `incomplete`."""
    return _starting(load("clients.cli.decide.docs:pages")(), incomplete)


def snapshots(incomplete: str) -> list[str]:
    """Return the names of this host's rescues that begin with `incomplete`; omit checkpoints."""
    try:
        settings = load_settings()
        snapshots = snapshots_of(StateDir(settings.state_dir), settings.git_env, None, everything=False)
    except (OSError, SeptetError):
        return []
    return _starting((each.snapshot for each in snapshots), incomplete)[:_SHOWN]
