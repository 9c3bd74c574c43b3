"""The watch over an opened pull request: its input, requests to the forge, ids and the keys of its memo."""

import re
from typing import Annotated, Final, Literal

from pydantic import Field

from septet.contracts.rework import MOST_EVENTS, FollowTerms, ReworkEvent
from septet.contracts.steps import StepCall
from septet.contracts.task import Task
from septet.contracts.wire import Wire


class WatchingHost(Wire):
    """A host whose worker looks at a pull request, and tells the workflow what is new."""

    host: str
    control_queue: str
    """A queue that is served as long as the host is there."""


class Follow(Wire):
    """What an agent needs to answer checks, reviews and conflicts of a pull request."""

    call: StepCall
    """The call of `implement_plan`: its workspace, settings and session."""
    terms: FollowTerms = FollowTerms()
    url: str = ""
    """The pull request's address."""


class PullRequestWatch(Wire):
    """A completed work order, whose pull request is watched until it is merged or closed."""

    task: Task
    """The work order as it was completed, as the board shows it."""
    forge: str
    """`github`, `gitlab`, `gitea` or `local`."""
    task_queue: str = ""
    """Where a local forge can be looked at: a queue of the host on whose disk it lies."""
    watcher: WatchingHost | None = None
    """Who looks; `None` where the host of its workspace does not: the workflow has it looked at by an activity."""
    follow: Follow | None = None
    """Where an agent answers what happens on the pull request."""


class PullRequestLook(Wire):
    """Ask what became of a pull request."""

    repository: str
    url: str
    commit: str = ""
    """What it brings."""
    follows: bool = False
    """Whether an agent answers what happens on it: then that is told too."""


class PullRequestNudge(Wire):
    """Something has happened on a pull request, as a forge has told."""

    delivery: Annotated[str, Field(max_length=64)] = ""
    """What the forge's delivery is known by: one that comes again asks for nothing more."""


class PullRequestEnd(Wire):
    """What became of a pull request."""

    state: Literal["open", "merged", "closed"]
    """`open` only where the look follows it."""
    events: Annotated[tuple[ReworkEvent, ...], Field(max_length=MOST_EVENTS)] = ()


class PullRequestNews(Wire):
    """What a host has seen of a pull request that it did not see before."""

    url: str
    state: Literal["open", "merged", "closed", "unknown"]
    kind: str = ""
    """Of what keeps the host from seeing it: the error's type."""
    why: Annotated[str, Field(max_length=1000)] = ""
    """What that says."""
    events: Annotated[tuple[ReworkEvent, ...], Field(max_length=MOST_EVENTS)] = ()
    """What waits for an agent's answer, where one follows it."""


WATCHER: Final = "watcher"
"""The key of a watch's memo under which the host lies that looks at its pull request."""
TROUBLE: Final = "trouble"
"""The key of a watch's memo under which lies why nobody can tell what became of its pull request."""
FOLLOWS: Final = "follows"
"""The key of a watch's memo under which lies whether an agent answers what happens on its pull request."""

LOCAL_PULL: Final = re.compile(r"file://(?P<path>/.+)/pull/(?P<number>[1-9][0-9]{0,8})")
"""The address of a pull request of a repository on a machine's disk."""
_WATCH: Final = "/pr"
"""No work order's id can end so."""


def watch_id(order_id: str) -> str:
    """Return the id of the workflow that watches a work order's pull request."""
    return f"{order_id}{_WATCH}"


def watched_order(workflow_id: str) -> str:
    """Return the id of the work order that a workflow is, or whose pull request it watches."""
    return workflow_id.removesuffix(_WATCH)
