"""Turn failures into errors for people, and refuse updates."""

import asyncio
from typing import Final

from pydantic import ValidationError
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.exceptions import TimeoutError as TemporalTimeoutError

from septet.contracts.names import Step
from septet.contracts.seal import UNSEALED_INPUT
from septet.contracts.steps import FailureFacts, StepResult
from septet.contracts.task import TaskError

_IN_WORDS: Final = {"open_workspace": "The workspace was not opened", "read_issues": "The issues were not read"}
"""How messages about failures begin, for activities that are not steps."""
GO_ON: Final = "Your work is saved. Inspect it, then continue with `septet retry`."
_MEND: Final = (
    "Your work is saved. Have an agent mend it with `septet retry ID --from implement_plan --feedback '…'`; "
    "`septet retry` repeats the step."
)


class StepFailed(Exception):  # noqa: N818 -- it says what happened to the step
    """Neither the first nor the second try of a step was accepted."""

    def __init__(self, step: Step, reasons: tuple[str, ...]) -> None:
        self.step = step
        self.reasons = reasons
        super().__init__(f"{step.value}: {'; '.join(reasons)}")

    def as_task_error(self) -> TaskError:
        """Return the failure as the error that the work order shows."""
        reasons = "; ".join(reason.rstrip(".") for reason in self.reasons) or "no reason was given"
        remedy = _MEND if self.step is Step.CREATE_COMMIT else GO_ON
        return TaskError(type="StepFailed", message=f"{self.step.value} failed: {reasons}.", remedy=remedy)


class AgentEnded(asyncio.CancelledError):
    """A cancelled step has ended its agent itself; the step's result names the saved work."""


class AgentLeft(asyncio.CancelledError):
    """The host of cancelled work is silent, so nobody waits: the host's next worker ends the agent."""


def explain_failure(error: BaseException) -> tuple[TaskError, StepResult | None]:
    """Return the error of a failed activity for people, and the step's result if the failure has one."""
    if not isinstance(error, ActivityError):
        return TaskError(type=type(error).__name__, message=str(error), remedy=GO_ON), None
    where, cause = _IN_WORDS.get(error.activity_type, error.activity_type), error.cause
    if isinstance(cause, ApplicationError):
        facts = _facts_of(cause)
        return (
            TaskError(
                type=cause.type or "ActivityFailed",
                message=f"{where}: {cause.message}",
                remedy=facts.remedy or GO_ON,
            ),
            facts.result,
        )
    if isinstance(cause, TemporalTimeoutError):
        message = f"{where}: no worker finished it in time ({cause.message})."
        return TaskError(
            type="TimedOut", message=message, remedy=f"Make sure that a worker is running. {GO_ON}"
        ), None
    return TaskError(type="ActivityFailed", message=f"{where}: {cause or error}", remedy=GO_ON), None


def failure_facts(error: BaseException) -> FailureFacts:
    """Return the facts in a failure's details; empty facts if no activity has failed."""
    cause = error.cause if isinstance(error, ActivityError) else None
    return _facts_of(cause) if isinstance(cause, ApplicationError) else FailureFacts()


def _facts_of(cause: ApplicationError) -> FailureFacts:
    """Return the facts in an activity's error; empty facts if the error is not Septet's."""
    try:
        return FailureFacts.model_validate(cause.details[0], strict=False) if cause.details else FailureFacts()
    except ValidationError:
        return FailureFacts()


REFUSED: Final = "RefusedTransition"


def refusal(message: str, remedy: str = "") -> ApplicationError:
    """Return the error with which a validator refuses an update; the history does not show such an update."""
    return ApplicationError(f"{message} {remedy}".strip(), message, remedy, type=REFUSED, non_retryable=True)


def invalid_update(message: str) -> ApplicationError:
    """Return the refusal of an update whose input is not valid."""
    return ApplicationError(message, message, "", type="InvalidInput", non_retryable=True)


def unsealed_update(message: str) -> ApplicationError:
    """Return the error for an update whose payload is not sealed."""
    return ApplicationError(message, message, "", type=UNSEALED_INPUT, non_retryable=True)
