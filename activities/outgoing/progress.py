"""Report on an issue: post the progress and the plan, set stage labels, and send messages to a tracker."""

import hashlib
import json
import re
from typing import Final

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from activities.host.host import Host
from activities.outgoing.clean_texts import outgoing_of
from septet.contracts.names import Stage, Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.tracker import SessionMessage, TrackedIssue
from septet.errors import EvidenceError, SeptetError
from septet.git.engine.place import Place
from septet.git.workspace.plan import plan_file
from septet.outgoing.text import Outgoing
from septet.system.durable import write_durably
from septet.system.masking import mask, preview
from septet.system.text import cut
from septet.trackers.choose import tracker_for
from septet.trackers.words import pull_request_message

_log = structlog.get_logger()


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    verdict: Verdict
    seconds: float = 0.0
    cost_usd: float | None = None


def note_progress(host: Host, place: Place, call: StepCall, result: StepResult) -> tuple[str, ...]:
    """Add an ended step's row to the issue's progress comment; return failures as warnings.

    Idempotent: a file on disk holds the rows of earlier steps, and the comment is found by its hidden mark. After
    a failure, the next step adds the missing row.
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
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def set_stage_label(host: Host, place: Place, call: StepCall, result: StepResult) -> tuple[str, ...]:
    """Set the issue's stage label after a step; return failures as warnings.

    Idempotent: labels are read before each change. Other labels stay. A step that succeeds on its second try
    replaces `blocked` with `executing`.
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
        others = [_label_of(each) for each in (Stage.EXECUTING, Stage.REVIEW, Stage.BLOCKED) if each is not stage]
        forge.set_label(int(number), _label_of(stage), others)
    except SeptetError as error:
        _log.warning("stage_label_not_set", why=preview(str(error)))
        return (f"the stage label was not set: {error}"[:200],)
    return ()


def _label_of(stage: Stage) -> str:
    return f"septet:{stage.value}"


_PLAN_LIMIT: Final = 50_000
"""The most characters of a plan in a comment; a note shows that a longer plan was cut."""


def waits_with_plan(call: StepCall, result: StepResult, *, is_asked_for: bool) -> bool:
    """Return whether to post the plan for approval; `is_asked_for` is true if settings want progress comments."""
    is_found = call.step is Step.FIND_PLAN_FILE and result.verdict is Verdict.DONE and result.plan_sha256
    wanted = call.approve_plan and (call.plan_comment or is_asked_for)
    return bool(is_found and wanted and call.workspace.issue_number.isdecimal())


def post_plan(host: Host, place: Place, call: StepCall, result: StepResult) -> tuple[str, ...]:
    """Post the plan that waits for approval as a comment on the issue; return failures as warnings.

    Idempotent: the comment of a plan is found by its hidden mark.
    """
    number, order_id = call.workspace.issue_number, call.workspace.work_order_id
    try:
        path, content = read_plan(place, result)
        sha256 = result.plan_sha256 or ""
        _, forge = host.forges.of(call.workspace.repository)
        forge.put_comment(
            int(number), f"{order_id}/plan/{sha256[:12]}", _plan_text(host, call, path, content, result)
        )
    except (SeptetError, OSError) as error:
        _log.warning("plan_not_posted", why=preview(str(error)))
        return (f"the plan was not posted: {error}"[:200],)
    return ()


def read_plan(place: Place, result: StepResult) -> tuple[str, bytes]:
    """Return the path of the plan that a step has found, and the beginning of its file.

    Raises:
        EvidenceError: The file has changed since the step.
        OSError: The file cannot be read.
    """
    path = plan_file(place, result.result_text or "")
    with (place.worktree / path).open("rb") as file:
        content = file.read(1024 * 1024)
        digest = hashlib.sha256(content + file.read()).hexdigest()
    if digest != result.plan_sha256:
        raise EvidenceError("its file has changed")
    return path, content


def _plan_text(host: Host, call: StepCall, path: str, content: bytes, result: StepResult) -> str:
    sha256, left = result.plan_sha256, [rescue for rescue in result.rescues if rescue.is_left_by_planner]
    outgoing, order_id = outgoing_of(host, call), call.workspace.work_order_id
    plan = outgoing.code(content.decode("utf-8", "replace"))
    if len(plan) > _PLAN_LIMIT:
        plan = f"{plan[:_PLAN_LIMIT]}\n\n[cut here: `septet plan {order_id}` shows all of it]"
    # A longer fence cannot be closed by the plan's text.
    fence = "`" * max(4, 1 + max(map(len, re.findall("`+", plan)), default=0))
    return "\n".join(
        (
            f"Work order `{order_id}` waits for approval of this plan, `{outgoing.code(path)}`:",
            "",
            *(line for rescue in left for line in (outgoing.line(rescue.telling), "")),
            f"{fence}markdown",
            plan.rstrip(),
            fence,
            "",
            "To approve exactly this plan, comment:",
            "",
            "```",
            f"/septet approve {sha256}",
            "```",
            "",
            "To let the agent plan again, comment:",
            "",
            "```",
            f"/septet reject {sha256} what should be different",
            "```",
        )
    )


_RESULT_LIMIT: Final = 2000


def report_to_tracker(host: Host, place: Place, call: StepCall, result: StepResult) -> tuple[str, ...]:
    """Report an ended step to a tracker; return failures as warnings.

    Idempotent: an earlier message is found by its key, and an earlier link by its address.
    """
    issue = call.workspace.tracker
    if issue is None:
        return ()
    try:
        tracker = tracker_for(issue.tracker, host.settings)
        if call.step is Step.CLASSIFY_ISSUE:
            tracker.mark_started(issue.id)
        if call.step is Step.CREATE_PULL_REQUEST and result.verdict is Verdict.DONE and result.result_text:
            tracker.attach(
                issue.id, issue.session, result.result_text, f"Pull request of {call.workspace.project}"
            )
        if issue.session:
            for message in _messages(outgoing_of(host, call), issue, place, call, result):
                tracker.say(message)
    except (SeptetError, OSError) as error:
        _log.warning("tracker_not_told", why=preview(str(error)))
        return (f"{issue.tracker} was not told: {error}"[:200],)
    return ()


def _messages(
    outgoing: Outgoing, issue: TrackedIssue, place: Place, call: StepCall, result: StepResult
) -> list[SessionMessage]:
    order_id = call.workspace.work_order_id
    key = f"{order_id}/{call.step.value}/{call.attempt}/{call.starts_from}"[:300]
    if result.verdict is not Verdict.DONE:
        reasons = outgoing.markdown("\n".join(f"- {reason}" for reason in result.reasons))
        text = cut(f"`{call.step.value}` was not accepted:\n\n{reasons}", _RESULT_LIMIT)
        return [SessionMessage(issue=issue, key=key, kind="thought", text=text)]
    if call.step is Step.CREATE_PULL_REQUEST:
        return [pull_request_message(issue, order_id, result.result_text or "")]
    text = cut(outgoing.markdown(result.result_text or ""), _RESULT_LIMIT)
    done = SessionMessage(
        issue=issue, key=key, kind="action", text=text, action=call.step.value, parameter=order_id
    )
    if call.step is Step.FIND_PLAN_FILE and call.approve_plan and result.plan_sha256:
        return [done, _question(outgoing, issue, place, call, result)]
    return [done]


def _question(
    outgoing: Outgoing, issue: TrackedIssue, place: Place, call: StepCall, result: StepResult
) -> SessionMessage:
    order_id, sha256 = call.workspace.work_order_id, result.plan_sha256 or ""
    path, content = read_plan(place, result)
    shown_path = outgoing.code(path)
    plan = outgoing.markdown(content.decode("utf-8", "replace")).rstrip()
    if len(plan) > _PLAN_LIMIT:
        plan = f"{plan[:_PLAN_LIMIT]}\n\n[cut here: `septet plan {order_id}` shows all of it]"
    text = "\n".join(
        (
            f"Work order `{order_id}` waits for approval of this plan, `{shown_path}`, SHA-256 `{sha256}`:",
            "",
            plan,
            "",
            "---",
            "",
            f"Reply `approve {sha256}` to approve exactly this plan, or `reject` and what should be different.",
        )
    )
    key = f"{order_id}/plan/{sha256}/{call.starts_from}"[:300]  # a second planning may return the same plan
    return SessionMessage(issue=issue, key=key, kind="elicitation", text=text, plan_sha256=sha256)
