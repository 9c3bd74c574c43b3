"""What the watch over an opened pull request is given, and what it asks its forge."""

from typing import Final, Literal

from septet.contracts.task import Task
from septet.contracts.wire import Wire

_WATCH: Final = "/pr"
"""No work order's id can end so."""


def watch_id(order_id: str) -> str:
    """Return the id of the workflow that watches a work order's pull request."""
    return f"{order_id}{_WATCH}"


def watched_order(workflow_id: str) -> str:
    """Return the id of the work order that a workflow is, or whose pull request it watches."""
    return workflow_id.removesuffix(_WATCH)


class PullRequestWatch(Wire):
    """A completed work order, whose pull request is watched until it is merged or closed."""

    task: Task
    """The work order as it was completed, as the board shows it."""
    forge: str
    """`github` or `local`."""
    task_queue: str = ""
    """Where a local forge can be looked at: a queue of the host on whose disk it lies."""


class PullRequestLook(Wire):
    """Ask what became of a pull request."""

    repository: str
    url: str
    commit: str = ""
    """What it brings."""


class PullRequestEnd(Wire):
    """What became of a pull request."""

    state: Literal["merged", "closed"]
