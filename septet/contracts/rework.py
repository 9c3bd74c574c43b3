"""What an agent does on an opened pull request: what starts a round, how it is prepared, and what is told."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from septet.contracts.wire import Wire

TITLE_LIMIT = 200
"""Characters of an event's title."""
MOST_EVENTS = 20
"""The most events that one look tells of, and one round answers."""
EventKind = Literal["checks", "review", "conflict"]
EventId = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]


class ReworkEvent(Wire):
    """Something on a pull request that its agent is to answer, once; the words themselves stay on the forge."""

    id: EventId
    """`checks:<commit>`, `review:<id on the forge>`, or `conflict:<commit>`."""
    kind: EventKind
    title: Annotated[str, Field(max_length=TITLE_LIMIT)] = ""
    """Such as the names of the checks that failed, or who asks for changes."""


class FollowTerms(Wire):
    """How far an agent follows a pull request."""

    by_default: bool = False
    """Whether the repository asks for it where the work order does not."""
    rounds: Annotated[int, Field(ge=1, le=20)] = 3
    work_seconds: Annotated[float, Field(gt=0)] = 4 * 3600.0
    """What all rounds together may take."""
    quiet_seconds: Annotated[float, Field(gt=0)] = 7 * 24 * 3600.0
    """After so long without news it ends."""


class Rework(Wire):
    """One round of an agent on a pull request: the rest of its prompt lies on the host."""

    round: int
    url: str
    """The pull request's address."""
    events: tuple[ReworkEvent, ...] = ()
    head: str = ""
    """Where the branch stood on the forge as the round was prepared: its push replaces nothing else."""
    merges: str = ""
    """A commit that is laid into the worktree, and that the round's commit brings in."""
    conflicts: tuple[str, ...] = ()
    """The first paths that hold a conflict's markers."""
    conflicts_count: int = 0


class PreparedRework(Wire):
    """What a round found: what its agent is to do, or why there is nothing to do."""

    rework: Rework
    state: Literal["ready", "answered", "merged", "closed", "gone"]
    """`answered`: nothing of it waits for an answer any more; `gone`: the branch is not there."""
    checkpoint: str = ""
    """What the agent begins with."""


RoundOutcome = Literal["working", "done", "failed", "ended", "merged", "closed", "gone"]


class ReworkRound(Wire):
    """One round, as people are shown it."""

    number: int
    events: tuple[str, ...] = ()
    """What it answers, in words."""
    outcome: RoundOutcome = "working"
    """`ended`: a person, or the pull request's end, has ended it; `gone`: there was no branch."""
    commit_sha: str = ""
    """What it pushed."""


class ReworkState(Wire):
    """What people are shown of the rounds on a pull request."""

    state: Literal["waiting", "working", "ended"] = "waiting"
    round: int = 0
    """The last one that began; 0 before the first."""
    rounds: int = 3
    """How many there may be."""
    events: tuple[str, ...] = ()
    """What the last round answers, in words."""
    why: str = ""
    """Why it ended."""
    history: Annotated[tuple[ReworkRound, ...], Field(max_length=20)] = ()
    """Its rounds, from the first to the last."""

    def ending_round(self, outcome: RoundOutcome, commit_sha: str = "") -> "ReworkState":
        """Return the state in which the round that works has ended."""
        if not self.history or self.history[-1].outcome != "working":
            return self
        last = self.history[-1].model_copy(update={"outcome": outcome, "commit_sha": commit_sha})
        return self.model_copy(update={"history": (*self.history[:-1], last)})

    @property
    def text(self) -> str:
        """All of it, in a few words."""
        events = ", ".join(self.events)
        match self.state:
            case "working":
                return f"round {self.round} of {self.rounds}: {events}"
            case "ended":
                return f"ended after {self.round} of {self.rounds} rounds: {self.why}"
            case _:
                return f"waits for news; {self.round} of {self.rounds} rounds so far"
