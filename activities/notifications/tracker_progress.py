"""Report a step in the session of its issue's tracker: the verdict, a waiting plan, the pull request."""

from typing import Final

import structlog

from activities.host.host import Host
from activities.notifications.plan_comment import read_plan
from activities.outgoing.clean_texts import outgoing_of
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.tracker import SessionMessage, TrackedIssue
from septet.errors import SeptetError
from septet.git.engine.place import Place
from septet.outgoing.text import Outgoing
from septet.system.preview import preview
from septet.system.text import cut
from septet.trackers.choose import tracker_for
from septet.trackers.tracker import Tracker
from septet.trackers.words import pull_request_message

_RESULT_LIMIT: Final = 2000
_PLAN_LIMIT: Final = 50_000
_log = structlog.get_logger()


def report_to_tracker(host: Host, place: Place, call: StepCall, result: StepResult) -> tuple[str, ...]:
    """Report a step that has just ended to a tracker; return failures as warnings.

    Idempotent: an earlier message is found by its key, and an earlier link by its address.
    """
    issue = call.workspace.tracker
    if issue is None:
        return ()
    try:
        tracker = tracker_for(issue.tracker, host.settings)
        _link(tracker, issue, call, result)
        if issue.session:
            for message in _messages(outgoing_of(host, call), issue, place, call, result):
                tracker.say(message)
    except (SeptetError, OSError) as error:
        _log.warning("tracker_not_told", why=preview(str(error)))
        return (f"{issue.tracker} was not told: {error}"[:200],)
    return ()


def _link(tracker: Tracker, issue: TrackedIssue, call: StepCall, result: StepResult) -> None:
    if call.step is Step.CLASSIFY_ISSUE:
        tracker.mark_started(issue.id)
    if call.step is Step.CREATE_PULL_REQUEST and result.verdict is Verdict.DONE and result.result_text:
        tracker.attach(issue.id, issue.session, result.result_text, f"Pull request of {call.workspace.project}")


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
