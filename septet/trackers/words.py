"""Septet's messages in an issue's conversation on a tracker, each with a fixed key, so that none is sent twice."""

import re
from typing import Final

from septet.contracts.forge_events import CommentCommand
from septet.contracts.task import Task
from septet.contracts.tracker import SessionMessage, TrackedIssue
from septet.forges.events.comment_commands import parse_command
from septet.system.text import cut

TAKEN: Final = "Work order `{}` has this issue already. Reply `retry` or `cancel` to decide about it."
GREETING: Final = "Septet has received this, and reads the issue."


def cancelled_message(issue: TrackedIssue, order_id: str) -> SessionMessage:
    """Return the message for a cancelled work order."""
    text = f"Work order `{order_id}` is cancelled. Its work is kept: reply `retry` to continue with it."
    return SessionMessage(issue=issue, key=f"{order_id}/cancelled", kind="response", text=text)


def failed_message(issue: TrackedIssue, order_id: str, why: str, again_at: str = "") -> SessionMessage:
    """Return the message for a failed work order; the key of a later failure contains its time, `again_at`."""
    remedy = "Everything is kept. Reply `retry` to continue with it."
    text = cut(f"Work order `{order_id}` failed{' again' * bool(again_at)}: {why}", 4000)
    key = "/".join(filter(None, (order_id, "failed", again_at)))
    return SessionMessage(issue=issue, key=key, kind="error", text=f"{text}\n\n{remedy}")


def completed_message(issue: TrackedIssue, task: Task) -> SessionMessage:
    """Return the message for a completed work order."""
    return pull_request_message(issue, task.id, task.pr_url or "")


def pull_request_message(issue: TrackedIssue, order_id: str, url: str) -> SessionMessage:
    """Return the message for a work order that has opened its pull request."""
    what = f"The pull request is open: {url}" if url else "It is completed."
    text = f"Work order `{order_id}`: {what}"
    return SessionMessage(issue=issue, key=f"{order_id}/completed/{url}"[:300], kind="response", text=text)


_WORD: Final = re.compile(r"\s*(?:/septet\s+)?(approve|reject|cancel|retry)\b[:,.]?", re.IGNORECASE)
USAGE: Final = (
    "Reply with one of these: `approve PLAN_SHA256`, `reject` and what should be different, `retry`, or `cancel`. "
    "Septet passes nothing else on to the agent."
)


def what_is_missing(command: CommentCommand) -> str:
    """Return a note on what a person's command lacks; empty if the command is complete."""
    match command.verb:
        case "unknown" | "run":
            return USAGE
        case "approve" if command.plan_sha256 is None:
            return "Name the plan that you have read: `approve PLAN_SHA256`, or choose *Approve this plan*."
        case "reject" if not command.words:
            return "Say what is wrong with the plan: `reject` and what should be different."
        case _:
            return ""


def parse_reply(body: str) -> CommentCommand:
    """Return the command in a person's reply; its verb is `unknown` if the words are no command."""
    match = _WORD.match(body)
    if match is None:
        return CommentCommand(verb="unknown")
    command = parse_command(f"/septet {match[1].lower()} {body[match.end() :].strip()}")
    return command or CommentCommand(verb="unknown")
