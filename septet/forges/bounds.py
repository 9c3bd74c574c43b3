"""Bounds of issues: the length of an issue's texts, and the number of issues with one label."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from septet.contracts.order import text_sha256
from septet.errors import InvalidInputError
from septet.forges.renames import asked_for
from septet.forges.values import TITLE_LIMIT, Comment, Issue

ISSUE_LIMIT_BYTES: Final = 256 * 1024
"""The most bytes of an issue's body and comments together."""
MOST_LABELLED: Final = 1000
"""The most open issues that may have one label."""


def bounded_issue(issue: Issue) -> Issue:
    """Return the issue with at most `ISSUE_LIMIT_BYTES` of body and comments, with a note at each cut.

    The body has priority; the newest comments, which describe the present state, come next.
    """
    whole, body = issue.text_sha256, _cut(issue.body, ISSUE_LIMIT_BYTES, issue.url)
    room_bytes = ISSUE_LIMIT_BYTES - len(body.encode(errors="replace"))
    comments: list[Comment] = []
    for comment in reversed(issue.comments):
        room_bytes -= len(comment.body.encode(errors="replace"))
        if room_bytes < 0:
            break
        comments.insert(0, comment)
    older = len(issue.comments) - len(comments)
    note = (Comment("septet", f"[{older} older comments are left out; all are at {issue.url}]"),) if older else ()
    title = " ".join(issue.title.split())[:TITLE_LIMIT]
    sha256 = whole or text_sha256(issue.title, issue.body)
    return replace(issue, title=title, body=body, comments=(*note, *comments), text_sha256=sha256)


def _cut(text: str, limit_bytes: int, url: str) -> str:
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit_bytes:
        return text
    note = f"\n\n[{len(encoded)} bytes, cut here; the whole text is at {url}]"
    return encoded[: limit_bytes - len(note.encode())].decode(errors="ignore") + note


def bounded_list(issues: Sequence[Issue], label: str, project: str) -> tuple[Issue, ...]:
    """Return the issues of a label in the order of their numbers, each bounded.

    Raises:
        InvalidInputError: The label has more than `MOST_LABELLED` issues, or an issue is not of `project`.
    """
    if len(issues) > MOST_LABELLED:
        message = f"label: more than {MOST_LABELLED} open issues have the label {label}."
        raise InvalidInputError(message, remedy="Name the issues by their numbers, or use a narrower label.")
    issues = sorted(issues, key=lambda issue: issue.number)
    return tuple(bounded_issue(asked_for(issue, project)) for issue in issues)
