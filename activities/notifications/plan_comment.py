"""Post a plan that waits for a person to its issue, with the SHA-256 that a decision must name."""

import hashlib
from typing import Final

import structlog

from activities.host.host import Host
from activities.outgoing.clean_texts import outgoing_of
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.errors import EvidenceError, SeptetError
from septet.git.engine.place import Place
from septet.git.evidence.evidence import plan_file
from septet.system.preview import preview

_PLAN_LIMIT: Final = 50_000
"""The most characters of a plan in a comment; a longer plan is cut, with a note."""
_READ_BYTES: Final = 1024 * 1024
_log = structlog.get_logger()


def waits_with_plan(call: StepCall, result: StepResult, *, is_asked_for: bool) -> bool:
    """Return whether a step has ended with a plan to post."""
    is_found = call.step is Step.FIND_PLAN_FILE and result.verdict is Verdict.DONE and result.plan_sha256
    wanted = call.approve_plan and (call.plan_comment or is_asked_for)
    return bool(is_found and wanted and call.workspace.issue_number.isdecimal())


def post_plan(host: Host, place: Place, call: StepCall, result: StepResult) -> tuple[str, ...]:
    """Post the waiting plan; return failures as warnings.

    Idempotent: each plan has one comment, found by its mark.
    """
    number, order_id = call.workspace.issue_number, call.workspace.work_order_id
    try:
        path, content = read_plan(place, result)
        sha256 = result.plan_sha256 or ""
        _, forge = host.forges.of(call.workspace.repository)
        forge.put_comment(int(number), f"{order_id}/plan/{sha256[:12]}", _text(host, call, path, content, result))
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
        content = file.read(_READ_BYTES)
        digest = hashlib.sha256(content + file.read()).hexdigest()
    if digest != result.plan_sha256:
        raise EvidenceError("its file has changed")
    return path, content


def _text(host: Host, call: StepCall, path: str, content: bytes, result: StepResult) -> str:
    sha256, left = result.plan_sha256, [rescue for rescue in result.rescues if rescue.is_left_by_planner]
    outgoing, order_id = outgoing_of(host, call), call.workspace.work_order_id
    plan = outgoing.code(content.decode("utf-8", "replace"))
    if len(plan) > _PLAN_LIMIT:
        plan = f"{plan[:_PLAN_LIMIT]}\n\n[cut here: `septet plan {order_id}` shows all of it]"
    fence = "`" * max(4, 1 + _longest_run(plan))
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


def _longest_run(text: str) -> int:
    """Return the length of the longest row of backticks: a longer fence cannot be closed by the plan's text."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
