"""Commands in comments: a comment is a command if its first line is `/septet VERB …`."""

import re
from typing import Final, get_args

from septet.contracts.decisions import FINDINGS_NAMED
from septet.contracts.forge_events import CommentCommand, Verb
from septet.contracts.names import SHA256, Step
from septet.outgoing.visible import visible_text

_FIRST: Final = re.compile(r"/septet(?:[ \t]+(?P<verb>\S{1,40})[ \t]*(?P<rest>.*))?")
_FINDINGS: Final = re.compile(r"[0-9a-f]{12}(?:\s+[0-9a-f]{12})*")
USAGE: Final = (
    "These are the commands: `/septet run`, `/septet retry [STEP]`, `/septet cancel [WHY]`, "
    "`/septet approve PLAN_SHA256`, `/septet approve FINDING…` and `/septet reject [PLAN_SHA256] FEEDBACK`."
)


def parse_command(body: str) -> CommentCommand | None:
    """Return the command in a comment; `None` if there is none, or if the comment has a hidden mark of Septet."""
    first, _, below = body.strip().partition("\n")
    match = _FIRST.fullmatch(first.strip())
    if match is None or is_own_text(body):
        return None
    verb = (match["verb"] or "").lower()
    words = visible_text(f"{match['rest'] or ''}\n{below}".strip()[:8000])
    head, _, tail = words.partition(" ") if " " in words.partition("\n")[0] else words.partition("\n")
    match verb:
        case "approve" | "reject" if SHA256.fullmatch(head.strip().lower()):
            return CommentCommand(verb=_verb(verb), plan_sha256=head.strip().lower(), words=tail.strip())
        case "approve" if _FINDINGS.fullmatch(words.lower()):
            return CommentCommand(verb="approve", findings=tuple(words.lower().split()[:FINDINGS_NAMED]))
        case "retry" if words:
            step = next((step for step in Step if step.value == head.strip()), None)
            return CommentCommand(verb="retry" if step else "unknown", step=step, words=tail.strip())
        case _:
            return CommentCommand(verb=_verb(verb), words=words)


def is_own_text(body: str) -> bool:
    """Return whether a text has a hidden mark of Septet: Septet wrote the text, or the text quotes Septet."""
    return "<!-- septet" in body


def _verb(word: str) -> Verb:
    return next((verb for verb in get_args(Verb) if verb == word), "unknown")
