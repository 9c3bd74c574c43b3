"""The single comment on an issue that shows its work order's progress, if the repository wants it."""

import json
from typing import Final

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from activities.host.host import Host
from septet.contracts.names import Stage, Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.errors import SeptetError
from septet.git.engine.place import Place
from septet.system.durable import write_durably
from septet.system.masking import mask
from septet.system.preview import preview

_PREFIX: Final = "septet:"
_STAGES: Final = (Stage.EXECUTING, Stage.REVIEW, Stage.BLOCKED)

_MINUTE: Final = 60
_log = structlog.get_logger()


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    verdict: Verdict
    seconds: float = 0.0
    cost_usd: float | None = None


def note_progress(host: Host, place: Place, call: StepCall, result: StepResult) -> tuple[str, ...]:
    """Write the row of an ended step into the issue's comment; return failures as warnings.

    Idempotent: the place's records hold the rows of earlier steps, and the comment is found by its mark. After a
    failure, the next step's comment holds the row.
    """
    number, order_id = call.workspace.issue_number, call.workspace.work_order_id
    if not number.isdecimal():
        return ()
    path = place.records / f"progress-{order_id}.json"
    try:
        rows = {step: _Row.model_validate(row) for step, row in json.loads(path.read_bytes()).items()}
    except (FileNotFoundError, ValueError, ValidationError):
        rows = {}
    row = _Row(verdict=result.verdict, seconds=result.duration_seconds, cost_usd=result.usage.cost_usd)
    rows[call.step.value] = row
    write_durably(path, json.dumps({step: each.model_dump(mode="json") for step, each in rows.items()}).encode())
    try:
        _, forge = host.forges.of(call.workspace.repository)
        forge.put_comment(int(number), order_id, _text(call, rows, result))
    except SeptetError as error:
        _log.warning("progress_comment_not_written", why=preview(str(error)))
        return (f"the progress comment was not written: {error}"[:200],)
    return ()


def _text(call: StepCall, rows: dict[str, _Row], result: StepResult) -> str:
    done = sum(row.verdict is Verdict.DONE for row in rows.values())
    agent, order_id = call.workspace.agent, call.workspace.work_order_id
    lines = [
        f"Septet is working on this with `{agent}`: work order `{order_id}`, {done} of {len(Step)} steps done.",
        "",
        "| step | | time | cost |",
        "| --- | --- | --- | --- |",
    ]
    lines += [_line(step, rows[step.value]) for step in Step if step.value in rows]
    costs = [row.cost_usd for row in rows.values() if row.cost_usd is not None]
    total = f"${sum(costs):.2f}" if costs else ""
    lines += [f"| together | | {_duration(sum(row.seconds for row in rows.values()))} | {total} |"]
    branch = result.result_text if call.step is Step.GENERATE_BRANCH else call.progress.branch_name
    if branch:
        lines += ["", f"Branch: `{mask(branch)}`"]
    if call.step is Step.CREATE_PULL_REQUEST and result.verdict is Verdict.DONE:
        lines += ["", f"Pull request: {result.result_text}"]
    return "\n".join(lines)


def _line(step: Step, row: _Row) -> str:
    cost = "" if row.cost_usd is None else f"${row.cost_usd:.2f}"
    return f"| {step.value} | {row.verdict.value} | {_duration(row.seconds)} | {cost} |"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), _MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def set_stage_label(host: Host, place: Place, call: StepCall, result: StepResult) -> tuple[str, ...]:
    """Set the issue's stage label after a step has ended; return failures as warnings.

    Idempotent: the labels are read first, and again after an unclear answer. Only stage labels change. A step that
    is done on its second try replaces `blocked` with `executing`.
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
