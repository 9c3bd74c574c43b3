"""The single label on an issue that shows its work order's stage, if the repository wants it."""

from typing import Final

import structlog

from activities.host.host import Host
from septet.contracts.names import Stage, Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.errors import SeptetError
from septet.git.engine.place import Place
from septet.system.preview import preview

_PREFIX: Final = "septet:"
_STAGES: Final = (Stage.EXECUTING, Stage.REVIEW, Stage.BLOCKED)
_log = structlog.get_logger()


def set_stage_label(host: Host, place: Place, call: StepCall, result: StepResult) -> tuple[str, ...]:
    """Set the issue's label by how a step has just ended; return failures as warnings.

    Idempotent: the labels are read first, and again after an unclear answer. Only these labels are changed. A step
    that is tried again replaces `blocked` with `executing`.

    Args:
        host: The host whose key is used.
        place: Not used: a label needs no record.
        call: The step.
        result: The step's result.
    """
    del place
    number = call.workspace.issue_number
    if not number.isdecimal():
        return ()
    stage = Stage.EXECUTING if result.verdict is Verdict.DONE else Stage.BLOCKED
    if call.step is Step.CREATE_PULL_REQUEST and result.verdict is Verdict.DONE:
        stage = Stage.REVIEW
    try:
        _, forge = host.forges.of(call.workspace.repository)
        others = [_label_of(each) for each in _STAGES if each is not stage]
        forge.set_label(int(number), _label_of(stage), others)
    except SeptetError as error:
        _log.warning("stage_label_not_set", why=preview(str(error)))
        return (f"the stage label was not set: {error}"[:200],)
    return ()


def _label_of(stage: Stage) -> str:
    return f"{_PREFIX}{stage.value}"
