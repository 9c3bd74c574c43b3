"""The recorded histories by the version that recorded them, and their replay."""

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from workers.connection.plugin import SeptetPlugin

REPLAY: Final = Path(__file__).resolve().parent.parent / "replay"
PATHS: Final = sorted((REPLAY / "histories").glob("*/*.json"))

_REMEDY: Final = """\
{name}: a work order that version {version} began cannot go on under this code, for the workflow's commands changed:
{error}
What to do: put the change behind a patch, so that work orders that are under way keep the old order:
    if workflow.patched("what-changed"):
        ...  # the new order
    else:
        ...  # the old order, until no such work order is left
Then name the new way in a test of tests/workflows that goes that way, and record its history with `make histories`.
A history that is recorded is never recorded again, and never removed while work orders of its version may be under way.
"""


class UnpatchedChangeError(AssertionError):
    """A change of the order of commands lacks a patch."""


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def events_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["events"]
    return found


async def replay(path: Path, *workflows: type) -> None:
    """Replay a history under its workflow's id, by these workflows or by this version's."""
    started = events_of(path)[0]["workflowExecutionStartedEventAttributes"]
    name = started.get("workflowId", f"wo-{path.stem}")
    history = WorkflowHistory.from_json(name, path.read_text(encoding="utf-8"))
    replayer = Replayer(workflows=workflows, plugins=[SeptetPlugin()])
    try:
        await replayer.replay_workflow(history)
    except NondeterminismError as error:
        told = _REMEDY.format(name=name_of(path), version=path.parent.name, error=str(error).splitlines()[0])
        raise UnpatchedChangeError(told) from error


def keep(way: str, history: WorkflowHistory) -> None:
    """Require a recorded history of a way, `<folder>/<name>`; with RECORD_HISTORIES record a missing history."""
    folder, name = way.split("/")
    if list((REPLAY / folder).glob(f"*/{name}.json")):
        return
    assert "RECORD_HISTORIES" in os.environ, f"no history of {way} is recorded: `make histories` records it"
    path = REPLAY / folder / version("septet") / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = json.loads(history.to_json(), object_hook=_without_places)
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def _without_places(part: dict[str, Any]) -> dict[str, Any]:
    """Drop the paths of a traceback, which depend on the recording machine."""
    return {name: value for name, value in part.items() if name != "stackTrace"}
