"""The calls around a reader: the reader's own call, and the call that continues the step with its answer."""

from septet.contracts.facts import Usage
from septet.contracts.limits import StepSettings
from septet.contracts.names import Verdict
from septet.contracts.steps import FinalizeCall, ReaderReport, StepCall, StepResult


def reader_of(call: StepCall, unread: StepResult) -> StepCall:
    """Return the call of the reader: another agent's turn, in a session of its own, paid as the step is."""
    return call.model_copy(
        update={
            "reads": unread.unread,
            "reading": None,
            "settles": "",
            "session_id": None,
            "reasons": (),
            "attempt": 1,
            "settings": StepSettings(),
            "starts_from": unread.checkpoint or call.starts_from,
            "pipeline": "",
            "pays_from": call.pipeline or call.pays_from,
        }
    )


def going_on(
    last: StepCall | FinalizeCall, activity_id: str, so_far: StepResult, reading: ReaderReport
) -> StepCall | FinalizeCall:
    """Return the call that continues with an answer after its reading.

    Args:
        last: The call that was answered.
        activity_id: The activity whose agent has answered it.
        so_far: What the step has come to, with all that was used.
        reading: What the reader has said.
    """
    call = step_of(last)
    update = {"reading": reading, "settles": activity_id, "starts_from": so_far.checkpoint or call.starts_from}
    call = call.model_copy(update=update)
    if not isinstance(last, FinalizeCall):
        return call
    result = so_far.model_copy(update={"verdict": Verdict.UNPARSED, "unread": ""})
    return last.model_copy(update={"call": call, "result": result})


def let_pass(waiting: StepCall | FinalizeCall, call: StepCall) -> StepCall | FinalizeCall | None:
    """Return the call that continues with an answer that waited for a person; `None` for another step or round."""
    step = step_of(waiting)
    if (step.step, step.rework, step.progress) != (call.step, call.rework, call.progress):
        return None
    step = step.model_copy(update={"allowed_findings": call.allowed_findings, "workspace": call.workspace})
    if not isinstance(waiting, FinalizeCall):
        return step
    unused = waiting.result.model_copy(update={"usage": Usage(), "duration_seconds": 0.0})  # it was counted before
    return waiting.model_copy(update={"call": step, "result": unused})


def step_of(call: StepCall | FinalizeCall) -> StepCall:
    """Return the step that a call is about."""
    return call.call if isinstance(call, FinalizeCall) else call
