"""Workspaces on lost hosts, and the report that a host is lost."""

from datetime import timedelta

from fakes.activities import Doubles
from temporalio.client import Client

from clients.temporal.hosts import give_up
from septet.contracts.workspace import MoveWorkspace, OpenWorkspace, Workspace
from septet.errors import NotFoundError, ServerNotReachedError

QUEUE = "lost-hosts"


def on_a_dead_host(asked: OpenWorkspace, *, kept: bool = True) -> Workspace:
    nowhere = {"host": "dead", "task_queue": "nobody", "control_queue": "nobody-control", "opened_by": "run"}
    return Doubles(QUEUE).workspace(asked).model_copy(update={**nowhere, "probe_seconds": 0.5, "kept": kept})


def to_a_living_host(asked: MoveWorkspace) -> Workspace:
    here = {"host": "host", "task_queue": QUEUE, "control_queue": ""}
    return asked.workspace.model_copy(update=here)


async def given_up(client: Client, host: str) -> list[str] | None:
    """Report that a host is lost, and return the work orders on it, or `None` before the server knows of any."""
    try:
        return (await give_up(client, host, timedelta(seconds=2))).work_orders
    except (NotFoundError, ServerNotReachedError):
        return None
