"""Issues as agents get them: cut to limits, and only with the comments that count."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from septet.contracts.order import text_sha256
from septet.errors import InvalidInputError
from septet.forges.issue_history import Writers
from septet.forges.limits import TITLE_LIMIT
from septet.forges.renames import asked_for
from septet.forges.values import Comment, Issue
from septet.outgoing.visible import visible_line, visible_text

_MOST_AUTHORS: Final = 30
"""The most accounts whose permission is checked, newest comments first; other comments are left out."""


def issue_for_agents(issue: Issue, writers: Writers | None) -> dict[str, JsonValue]:
    """Return an issue as agents get it; if `writers` is `None`, with all comments.

    With `writers`, one note replaces all comments whose author may not push and did not write the issue.

    Raises:
        ForgeUnavailableError: The forge did not answer.
        ForgeError: The forge refused.
    """
    comments = issue.comments
    if writers is not None:
        authors = dict.fromkeys(each.author for each in reversed(comments) if not each.is_note)
        asked = [each for each in authors if each != issue.author][:_MOST_AUTHORS]
        counting = {issue.author, *(each for each in asked if writers.may_write(each))}
        kept = [each for each in comments if each.is_note or each.author in counting]
        comments = (*left_out(len(comments) - len(kept), issue.url), *kept)
    return {
        "number": issue.number,
        "title": visible_line(issue.title),
        "author": issue.author,
        "body": visible_text(issue.body),
        "url": issue.url,
        "state": issue.state,
        "labels": [visible_line(label) for label in issue.labels],
        "comments": [comment_for_agents(each, writers) for each in comments],
    }


def comment_for_agents(comment: Comment, writers: Writers | None) -> JsonValue:
    """Return a comment as agents get it, with `may_write: false` if its author may not push."""
    told: dict[str, JsonValue] = {
        "author": comment.author,
        "body": comment.body if comment.is_note else visible_text(comment.body),
        "created_at": comment.created_at,
        "standing": comment.standing,
    }
    is_strangers = writers is not None and not comment.is_note and not writers.may_write(comment.author)
    return {**told, "may_write": False} if is_strangers else told


def left_out(count: int, url: str) -> tuple[Comment, ...]:
    """Return a note that stands for comments that were left out; empty for a `count` of 0."""
    words = f"{count} comment of others is" if count == 1 else f"{count} comments of others are"
    return (Comment("septet", f"[{words} left out; all are at {url}]"),) if count else ()


ISSUE_LIMIT_BYTES: Final = 256 * 1024
"""The most bytes of an issue's body and comments together."""
MOST_LABELLED: Final = 1000
"""The most open issues with one label."""


def bounded_issue(issue: Issue) -> Issue:
    """Return an issue with body and comments cut to `ISSUE_LIMIT_BYTES`, and a note at each cut.

    The body has priority, then the newest comments.
    """
    body, content = issue.body, issue.body.encode(errors="replace")
    if len(content) > ISSUE_LIMIT_BYTES:
        note = f"\n\n[{len(content)} bytes, cut here; the whole text is at {issue.url}]"
        body = content[: ISSUE_LIMIT_BYTES - len(note.encode())].decode(errors="ignore") + note
    comments = newest_comments(issue.comments, ISSUE_LIMIT_BYTES - len(body.encode(errors="replace")), issue.url)
    title = " ".join(issue.title.split())[:TITLE_LIMIT]
    sha256 = issue.text_sha256 or text_sha256(issue.title, issue.body)
    return replace(issue, title=title, body=body, comments=comments, text_sha256=sha256)


def newest_comments(comments: Sequence[Comment], room_bytes: int, url: str) -> tuple[Comment, ...]:
    """Return the newest comments that fit, after a note on the number of older ones."""
    kept: list[Comment] = []
    for comment in reversed(comments):
        room_bytes -= len(comment.body.encode(errors="replace"))
        if room_bytes < 0:
            break
        kept.insert(0, comment)
    older = len(comments) - len(kept)
    note = (Comment("septet", f"[{older} older comments are left out; all are at {url}]"),) if older else ()
    return (*note, *kept)


def bounded_list(issues: Sequence[Issue], label: str, project: str) -> tuple[Issue, ...]:
    """Return the issues with a label, sorted by number, each cut to `ISSUE_LIMIT_BYTES`.

    Raises:
        InvalidInputError: The label has more than `MOST_LABELLED` issues, or an issue is not of `project`.
    """
    if len(issues) > MOST_LABELLED:
        message = f"label: more than {MOST_LABELLED} open issues have the label {label}."
        raise InvalidInputError(message, remedy="Name the issues by their numbers, or use a narrower label.")
    issues = sorted(issues, key=lambda issue: issue.number)
    return tuple(bounded_issue(asked_for(issue, project)) for issue in issues)
