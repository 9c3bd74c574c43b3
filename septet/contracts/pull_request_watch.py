"""The input and the messages of the workflow that watches a pull request."""

from typing import Annotated, Literal

from pydantic import Field

from septet.contracts.rework import MOST_EVENTS, FollowTerms, ReworkEvent
from septet.contracts.steps import StepCall
from septet.contracts.task import Task
from septet.contracts.wire import Wire


class WatchingHost(Wire):
    """A host that polls a pull request, and reports to the pull request's watch what has changed."""

    host: str
    control_queue: str
    """The queue that the host serves even when it is busy."""


class Follow(Wire):
    """What an agent needs to answer checks, reviews and conflicts of a pull request."""

    call: StepCall
    """The call of `implement_plan`, with its workspace, settings and session."""
    terms: FollowTerms = FollowTerms()
    url: str = ""
    """The pull request's address."""


class PullRequestWatch(Wire):
    """A completed work order, whose pull request is watched until it is merged or closed."""

    task: Task
    """The completed work order, as the board shows it."""
    forge: str
    """`github`, `gitlab`, `gitea` or `local`."""
    task_queue: str = ""
    """For a local forge, the queue of the host with the repository; otherwise empty."""
    watcher: WatchingHost | None = None
    """The host that polls the pull request; `None` if the workspace's host does not poll: the workflow then polls
    with an activity."""
    follow: Follow | None = None
    """The facts for the agent that answers events on the pull request; `None` if no agent does."""


class PullRequestLook(Wire):
    """A request for the state of a pull request."""

    repository: str
    url: str
    commit: str = ""
    """The last commit of the pull request that the watch knows of."""
    follows: bool = False
    """Whether an agent answers events on the pull request; if so, the reply contains the events."""


class PullRequestNudge(Wire):
    """A forge's report that a pull request may have changed."""

    delivery: Annotated[str, Field(max_length=64)] = ""
    """The id of the forge's delivery; a repeated delivery with the same id has no effect."""


class PullRequestEnd(Wire):
    """How a pull request ended, or its state while it is open."""

    state: Literal["open", "merged", "closed"]
    """The state; `open` only in reply to a request with `follows`."""
    events: Annotated[tuple[ReworkEvent, ...], Field(max_length=MOST_EVENTS)] = ()


class PullRequestNews(Wire):
    """A host's report to a watch: the pull request has changed, has events, or cannot be read."""

    url: str
    state: Literal["open", "merged", "closed", "unknown"]
    kind: str = ""
    """The type of the error, if the host cannot read the pull request."""
    why: Annotated[str, Field(max_length=1000)] = ""
    """The message of the error, if the host cannot read the pull request."""
    events: Annotated[tuple[ReworkEvent, ...], Field(max_length=MOST_EVENTS)] = ()
    """The events that wait for the agent's answer, if an agent follows the pull request."""
