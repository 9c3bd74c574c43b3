"""The rounds of an agent on a pull request: their events, their preparation and their reports."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from septet.contracts.wire import Wire

TITLE_LIMIT = 200
"""The most characters of an event's title."""
MOST_EVENTS = 20
"""The most events that one poll reports, and that one round answers."""
EventKind = Literal["checks", "review", "conflict"]
EventId = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]


class ReworkEvent(Wire):
    """An event on a pull request, which an agent answers once; it contains no text of a review or comment."""

    id: EventId
    """`checks:<commit>`, `review:<id>`, `thread:<id>:<last comment>`, or `conflict:<commit>:<base commit>`."""
    kind: EventKind
    title: Annotated[str, Field(max_length=TITLE_LIMIT)] = ""
    """A short text, such as the names of the failed checks, or the reviewer who requests changes."""


class FollowTerms(Wire):
    """How long and how often an agent follows a pull request."""

    by_default: bool = False
    """Whether the repository's settings request an agent on the pull request, even if the work order does not."""
    rounds: Annotated[int, Field(ge=1, le=20)] = 3
    work_seconds: Annotated[float, Field(gt=0)] = 4 * 3600.0
    """The most seconds of work for all rounds together."""
    quiet_seconds: Annotated[float, Field(gt=0)] = 7 * 24 * 3600.0
    """The seconds without an event on the pull request after which the agent stops following it."""


class Rework(Wire):
    """One round on a pull request: what the turn of its agent needs to know."""

    round: int
    url: str
    """The pull request's address."""
    events: tuple[ReworkEvent, ...] = ()
    head: str = ""
    """The branch's commit on the forge when the round was prepared; the round's push may replace only this
    commit."""
    merges: str = ""
    """The commit that is merged into the worktree, and that becomes a parent of the round's commit."""
    conflicts: tuple[str, ...] = ()
    """The first paths that contain conflict markers."""
    conflicts_count: int = 0


class PreparedRework(Wire):
    """The result of preparing a round: what the agent must do, or why there is nothing to do."""

    rework: Rework
    state: Literal["ready", "answered", "merged", "closed", "gone"]
    """The state of the round: `answered` if no event waits for an answer now, and `gone` if the branch does not
    exist."""
    checkpoint: str = ""
    """The snapshot with which the agent begins."""


RoundOutcome = Literal["working", "done", "failed", "ended", "merged", "closed", "gone"]


class ReworkRound(Wire):
    """One round as people see it."""

    number: int
    events: tuple[str, ...] = ()
    """The events that the round answers, in words."""
    outcome: RoundOutcome = "working"
    """The outcome: `ended` if a person or the pull request's end ended the round, and `gone` if the branch did not
    exist."""
    commit_sha: str = ""
    """The commit that the round pushed."""


class ReworkState(Wire):
    """All rounds on a pull request as people see them."""

    state: Literal["waiting", "working", "ended"] = "waiting"
    round: int = 0
    """The number of the last round that began; 0 before the first round."""
    rounds: int = 3
    """The most rounds that may begin on the pull request."""
    events: tuple[str, ...] = ()
    """The events that the last round answers, in words."""
    why: str = ""
    """The reason why the agent stopped following the pull request."""
    history: Annotated[tuple[ReworkRound, ...], Field(max_length=20)] = ()
    """The rounds, first to last."""

    def ending_round(self, outcome: RoundOutcome, commit_sha: str = "") -> "ReworkState":
        """Return the state after the running round ended with `outcome`."""
        if not self.history or self.history[-1].outcome != "working":
            return self
        last = self.history[-1].model_copy(update={"outcome": outcome, "commit_sha": commit_sha})
        return self.model_copy(update={"history": (*self.history[:-1], last)})

    @property
    def text(self) -> str:
        """The state in a few words."""
        events = ", ".join(self.events)
        match self.state:
            case "working":
                return f"round {self.round} of {self.rounds}: {events}"
            case "ended":
                return f"ended after {self.round} of {self.rounds} rounds: {self.why}"
            case _:
                return f"waits for news; {self.round} of {self.rounds} rounds so far"
