"""People's decisions about a work order, and the table of the allowed moves on the board."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final, TypeVar

from pydantic import Field, StringConstraints, ValidationError

from septet.contracts.facts import Usage
from septet.contracts.names import SHA256, Stage, Status, Step
from septet.contracts.task import Move, Task
from septet.contracts.wire import StrictWire, Wire
from septet.contracts.wording import describe_mistakes
from septet.errors import InvalidInputError, RefusedTransitionError


class Target(StrEnum):
    """Where a person can move a work order: a stage of the board, or `cancelled`."""

    COLLECTED = "collected"
    TRIAGED = "triaged"
    EXECUTING = "executing"
    REVIEW = "review"
    DONE = "done"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"


ALLOWED: Final[Mapping[tuple[Status, Stage], tuple[Target, ...]]] = MappingProxyType(
    {
        (Status.PENDING, Stage.COLLECTED): (Target.TRIAGED, Target.BLOCKED, Target.CANCELLED),
        (Status.PENDING, Stage.TRIAGED): (Target.COLLECTED, Target.EXECUTING, Target.BLOCKED, Target.CANCELLED),
        (Status.PENDING, Stage.BLOCKED): (Target.COLLECTED, Target.TRIAGED, Target.CANCELLED),
        (Status.RUNNING, Stage.EXECUTING): (Target.BLOCKED, Target.CANCELLED),
        (Status.WAITING, Stage.EXECUTING): (Target.BLOCKED, Target.CANCELLED),
        (Status.WAITING, Stage.BLOCKED): (Target.EXECUTING, Target.CANCELLED),
        (Status.COMPLETED, Stage.REVIEW): (Target.EXECUTING, Target.DONE, Target.BLOCKED),
        (Status.COMPLETED, Stage.EXECUTING): (Target.REVIEW, Target.DONE, Target.BLOCKED),
        (Status.COMPLETED, Stage.BLOCKED): (Target.EXECUTING, Target.DONE),
        (Status.FAILED, Stage.BLOCKED): (Target.EXECUTING, Target.CANCELLED),
    }
)
"""The allowed targets by status and stage; status `waiting` in stage `blocked` is a wait for a host."""


def targets_of(status: Status, stage: Stage) -> tuple[Target, ...]:
    """Return the targets to which a work order with this status and stage may move."""
    return ALLOWED.get((status, stage), ())


def check_move(task: Task, to: Target) -> None:
    """Raise if a person may not move a work order to a target.

    Raises:
        RefusedTransitionError: The move is not allowed; the remedy lists the allowed targets.
    """
    targets = targets_of(task.status, task.stage)
    if to in targets:
        return
    remedy = "It is finished and cannot be moved."
    if targets:
        remedy = f"From here it can move to: {', '.join(targets)}."
    elif task.status is Status.CANCELLED or task.has_plan_alone:
        remedy = f"It has ended. `septet retry {task.id}` continues it."
    message = f"{task.id} is in {task.stage.value} ({task.status.value}) and cannot move to {to.value}."
    raise RefusedTransitionError(message, remedy=remedy)


HISTORY_KEPT = 100
"""The number of moves that a work order keeps after a reset."""

Who = Annotated[str, StringConstraints(max_length=200)]
"""The name of the person who decides, as the work order's history shows it."""
Words = Annotated[str, StringConstraints(max_length=8000)]
"""A text that a person wrote."""
Decision = TypeVar("Decision", bound=Wire)
FINDINGS_NAMED = 100
"""The most findings that one decision can name."""
FindingId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
Sha256 = Annotated[str, StringConstraints(pattern=f"^{SHA256.pattern}$")]


class MoveReason(Wire):
    """The target of a move on the board, the person who moves the work order, and the reason."""

    to: Target
    who: Who = ""
    why: Words = ""
    feedback: Words = ""
    """Your feedback for the agent, if the move lets it work again."""

    @property
    def reason_line(self) -> str:
        """The target, the person and the reason on one line; empty if person and reason are unknown."""
        by = f"{self.to.value} by {self.who}" if self.who else ""
        return ": ".join(part for part in (by, self.why) if part)


class MoveCall(MoveReason, StrictWire):
    """Move a work order on the board."""


class PlanDecision(StrictWire):
    """Approve or reject the plan that a work order waits with."""

    plan_sha256: Sha256
    """The SHA-256 of the plan's file that the person saw; a decision on another plan is refused."""
    who: Who = ""
    why: Words = ""
    feedback: Words = ""
    """Your feedback for the planner, if you reject the plan."""


class FindingsDecision(StrictWire):
    """Allow findings in the work, such as keys or protected paths, or have the agent remove them."""

    findings: Annotated[tuple[FindingId, ...], Field(max_length=FINDINGS_NAMED)] = ()
    """The ids of findings that the work order shows; other ids are refused. A rejection without ids concerns all
    waiting findings."""
    who: Who = ""
    why: Words = ""
    feedback: Words = ""
    """Your feedback for the agent, if you reject the findings."""


class RetryCall(StrictWire):
    """Continue a work order that is held up or closed."""

    from_step: Step | None = None
    """The step to repeat first; the failed step when absent."""
    who: Who = ""
    why: Words = ""
    feedback: Words = ""
    """Your feedback for the agent when it repeats the step."""


class PreviousRun(Wire):
    """Facts about a work order before its reset, which the history after the reset does not contain."""

    came_from: Stage
    """The stage of the previous run."""
    who: Who = ""
    why: Words = ""
    feedback: Words = ""
    history: Annotated[tuple[Move, ...], Field(max_length=HISTORY_KEPT)] = ()
    """The moves of the previous run."""
    host: Annotated[str, Field(max_length=200)] = ""
    """The host on which the previous run ended; empty if it is unknown."""
    usage: Usage = Usage()
    """The whole use of the work order until the reset, including steps that the reset repeats."""


def parse_decision(kind: type[Decision], **fields: object) -> Decision:
    """Return a decision of a kind from the fields that a person gave.

    Raises:
        InvalidInputError: A field is not valid; the message names it.
    """
    try:
        return kind.model_validate(fields, strict=False)
    except ValidationError as error:
        raise InvalidInputError(f"{describe_mistakes(error)}.") from error
