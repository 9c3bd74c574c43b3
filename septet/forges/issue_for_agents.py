"""An issue in the form for agents: its visible text, and only the comments that count."""

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from septet.forges.issue_history import Writers
from septet.forges.values import Comment, Issue
from septet.outgoing.visible import visible_line, visible_text

_MOST_AUTHORS: Final = 30
"""The most accounts whose permission is checked, the newest first; comments of further accounts are left out."""


def issue_for_agents(issue: Issue, writers: Writers | None) -> dict[str, JsonValue]:
    """Return an issue in the form for agents.

    Args:
        issue: The issue as the forge has it.
        writers: The accounts that may push; `None` if only people on this machine write. A comment counts only if
            its author may push or is the issue's author; other comments are left out and counted.

    Raises:
        ForgeUnavailableError: The forge did not answer.
        ForgeError: The forge refused.
    """
    comments = issue.comments if writers is None else _that_count(issue, writers)
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
    """Return a comment in the form for agents, with a mark if its author may not push."""
    told: dict[str, JsonValue] = {
        "author": comment.author,
        "body": comment.body if comment.is_note else visible_text(comment.body),
        "created_at": comment.created_at,
        "standing": comment.standing,
    }
    is_strangers = writers is not None and not comment.is_note and not writers.may_write(comment.author)
    return {**told, "may_write": False} if is_strangers else told


def left_out(count: int, url: str) -> tuple[Comment, ...]:
    """Return one note that replaces the comments that do not count; empty for a `count` of 0."""
    words = f"{count} comment of others is" if count == 1 else f"{count} comments of others are"
    return (Comment("septet", f"[{words} left out; all are at {url}]"),) if count else ()


def _that_count(issue: Issue, writers: Writers) -> Sequence[Comment]:
    """Return the comments of writers and of the issue's author, after a note that counts the omitted comments."""
    authors = dict.fromkeys(each.author for each in reversed(issue.comments) if not each.is_note)
    asked = [each for each in authors if each != issue.author][:_MOST_AUTHORS]
    counting = {issue.author, *(each for each in asked if writers.may_write(each))}
    kept = [each for each in issue.comments if each.is_note or each.author in counting]
    return (*left_out(len(issue.comments) - len(kept), issue.url), *kept)
