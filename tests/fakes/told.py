"""A work order whose history is recorded: what it is given, how its steps end, and what happens to it meanwhile."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from fakes.activities import Behaviour, Doubles
from temporalio.client import Client, WorkflowHandle

from clients.temporal.hosts import give_up
from septet.contracts.names import Step
from septet.contracts.steps import FinalizeCall, StepResult
from septet.contracts.workspace import MoveWorkspace, OpenWorkspace, Workspace
from septet.errors import NotFoundError, ServerNotReachedError

QUEUE: Final = "histories"
ORDER: Final = {"repository": "/app", "issue": 1}

Handle = WorkflowHandle[Any, Any]
Event = Callable[[Client, Handle], Awaitable[None]]


async def _nothing(client: Client, handle: Handle) -> None:
    """Let it run to its end."""


@dataclass(frozen=True)
class Told:
    """One work order: what it is given, how its steps end, and what happens to it meanwhile."""

    steps: dict[Step, Sequence[Behaviour]] = field(default_factory=dict)
    finalizer: Sequence[Callable[[FinalizeCall], StepResult]] = ()
    order: Any = field(default_factory=lambda: ORDER)
    event: Event = _nothing
    open_workspace: Callable[[OpenWorkspace], Workspace] | None = None
    move_workspace: Callable[[MoveWorkspace], Workspace] = lambda asked: asked.workspace


def on_a_dead_host(asked: OpenWorkspace, *, kept: bool = True) -> Workspace:
    """Return a workspace on a host that never answers."""
    nowhere = {"host": "dead", "task_queue": "nobody", "control_queue": "nobody-control", "opened_by": "run"}
    return Doubles(QUEUE).workspace(asked).model_copy(update={**nowhere, "probe_seconds": 0.5, "kept": kept})


def to_a_living_host(asked: MoveWorkspace) -> Workspace:
    """Return the workspace on the host that all doubles are on."""
    here = {"host": "host", "task_queue": QUEUE, "control_queue": ""}
    return asked.workspace.model_copy(update=here)


async def given_up(client: Client, host: str) -> list[str] | None:
    """Say that a host is dead, and return who was there; what comes there is found a moment later.

    What another test has left running without a worker may be there, too, and does not answer.
    """
    try:
        return (await give_up(client, host, timedelta(seconds=5))).work_orders
    except (NotFoundError, ServerNotReachedError):
        return None
