"""Replies of people in a session of a tracker: a command word, then their own text."""

import re
from typing import Final

from septet.contracts.comment_commands import CommentCommand
from septet.forges.events.comment_commands import parse_command

_WORD: Final = re.compile(r"\s*(?:/septet\s+)?(approve|reject|cancel|retry)\b[:,.]?", re.IGNORECASE)
USAGE: Final = (
    "Reply with one of these: `approve PLAN_SHA256`, `reject` and what should be different, `retry`, or `cancel`. "
    "Septet passes nothing else on to the agent."
)


def what_is_missing(command: CommentCommand) -> str:
    """Return what a reply lacks, for people; empty if the reply is complete."""
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
    """Return the command of a reply, as of a comment with the same words; `unknown` if it has no command."""
    match = _WORD.match(body)
    if match is None:
        return CommentCommand(verb="unknown")
    command = parse_command(f"/septet {match[1].lower()} {body[match.end() :].strip()}")
    return command or CommentCommand(verb="unknown")
