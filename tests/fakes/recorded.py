"""The recorded histories, by the version that recorded them, and how one is replayed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from workers.connection.plugin import SeptetPlugin

ROOT: Final = Path(__file__).resolve().parent.parent / "replay" / "histories"
PATHS: Final = sorted(ROOT.glob("*/*.json"))

_REMEDY: Final = """\
{name}: a work order that version {version} began cannot go on under this code, for the workflow's commands changed:
{error}
What to do: put the change behind a patch, so that work orders that are under way keep the old order:
    if workflow.patched("what-changed"):
        ...  # the new order
    else:
        ...  # the old order, until no such work order is left
Then describe the new way in tests/fakes/histories.py and record it with `make histories`
(scripts/record_histories.py). A history that is recorded is never recorded again, and never removed while work
orders of its version may be under way.
"""


class UnpatchedChangeError(AssertionError):
    """A change of the order of commands lacks a patch."""


def name_of(path: Path) -> str:
    """Return `<version>/<name>`."""
    return f"{path.parent.name}/{path.stem}"


def events_of(path: Path) -> list[dict[str, Any]]:
    """Return the events of a history as they are written down."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["events"]
    return found


async def replay(path: Path, workflows: Sequence[type]) -> None:
    """Replay a history, under the id that its workflow had.

    Raises:
        UnpatchedChangeError: The workflow gives other commands now; the message says what to do.
    """
    started = events_of(path)[0]["workflowExecutionStartedEventAttributes"]
    name = started.get("workflowId", f"wo-{path.stem}")
    history = WorkflowHistory.from_json(name, path.read_text(encoding="utf-8"))
    replayer = Replayer(workflows=workflows, plugins=[SeptetPlugin()])
    try:
        await replayer.replay_workflow(history)
    except NondeterminismError as error:
        told = _REMEDY.format(name=name_of(path), version=path.parent.name, error=str(error).splitlines()[0])
        raise UnpatchedChangeError(told) from error
