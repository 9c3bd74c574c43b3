"""The interface of all trackers. People's text in a tracker is untrusted, and cut to a limit."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from pydantic import JsonValue

from septet.contracts.tracker import SessionMessage
from septet.forges.issue_text import ISSUE_LIMIT_BYTES, comment_for_agents, left_out, newest_comments
from septet.forges.values import Comment
from septet.outgoing.visible import visible_line, visible_text
from septet.system.text import cut, one_line

_HEARD: Final = ("member", "guest")
"""The roles of people whose comments agents get; apps and outsiders have other roles."""
_STANDINGS: Final = {"guest": "a guest of the workspace", "app": "an app"}
_MARK: Final = re.compile(r"#septet-(?P<order>wo-[A-Za-z0-9._-]{1,61})")


@dataclass(frozen=True, slots=True)
class TrackerIssue:
    """An issue of a tracker, as it was when it was read."""

    id: str
    key: str
    """The key that people use, such as `ENG-12`."""
    title: str
    body: str
    url: str
    group: str = ""
    """The key of the issue's team."""
    projects: tuple[str, ...] = ()
    """The names that the settings may use for the issue's project."""
    labels: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    """The comments from the oldest to the newest."""

    def as_agents_see_it(self) -> dict[str, JsonValue]:
        """Return the issue as agents get it: like a forge's issue, with an empty number."""
        kept = [each for each in self.comments if each.is_note or each.standing in _HEARD]
        note = left_out(len(self.comments) - len(kept), self.url)
        comments = [comment_for_agents(each, None) for each in (*note, *kept)]
        return {
            "number": "",
            "title": visible_line(self.title),
            "body": visible_text(self.body),
            "url": self.url,
            "state": "open",
            "labels": [visible_line(label) for label in self.labels],
            "comments": comments,
        }


@dataclass(frozen=True, slots=True)
class IssueMark:
    """The mark on an issue that names its work order."""

    order_id: str
    claimant: str
    """The workflow that made the mark; empty if the tracker does not report it."""


@dataclass(frozen=True, slots=True)
class LabelledIssue:
    """An open issue that has a label."""

    number: int
    """The issue's number within the team: 12 for `ENG-12`."""
    mark: IssueMark | None = None


@dataclass(frozen=True, slots=True)
class LabelSetter:
    """The account that set a label, and its role in the tracker's workspace."""

    name: str = ""
    standing: Literal["member", "guest", "app", ""] = ""
    """The account's role; empty if the tracker does not report the account."""

    def refusal(self, label: str, trusted_apps: Collection[str]) -> str:
        """Return why a label does not count; empty if a member or an app in `trusted_apps` has set it."""
        is_named = self.standing == "app" and self.name.lower() in {each.lower() for each in trusted_apps}
        if self.standing == "member" or is_named:
            return ""
        why = f"the tracker does not tell who set the label {label}"
        if self.standing:
            why = f"{one_line(self.name)}, who set the label {label}, is {_STANDINGS[self.standing]}"
        return cut(f"{why}. A member of the workspace can set it again.", 1000)


class Tracker(Protocol):
    """A tracker of issues. All methods raise `TrackerUnavailableError`, `TrackerError` and `NotFoundError`."""

    def read_issue(self, issue_id: str) -> TrackerIssue:
        """Return an issue with its comments, by its id or its key."""

    def open_issues(self, team: str, label: str) -> tuple[LabelledIssue, ...]:
        """Return a team's open issues with a label that are delegated to nobody or to Septet, the oldest first."""

    def label_setter(self, issue_id: str, label: str) -> LabelSetter:
        """Return the account that last set a label on an issue."""

    def find_mark(self, issue_id: str) -> IssueMark | None:
        """Return the oldest mark of this installation on an issue; `None` if there is none."""

    def put_mark(self, issue: TrackerIssue, mark: IssueMark) -> None:
        """Put a mark on an issue; the mark remains after Temporal has deleted the work order."""

    def say(self, message: SessionMessage) -> None:
        """Write a message in an issue's conversation; a repeated call writes nothing."""

    def attach(self, issue_id: str, session: str, url: str, title: str) -> None:
        """Put a link once on an issue, and once in the conversation `session` unless `session` is empty."""

    def mark_started(self, issue_id: str) -> None:
        """Show on an issue that this installation works on it.

        An issue that is not started moves to its team's first started state. An issue without a delegate gets this
        installation's agent.
        """


def mark_url(issue: TrackerIssue, order_id: str) -> str:
    """Return the address that serves as a mark: the issue's address with the work order's id."""
    return f"{issue.url.partition('#')[0]}#septet-{order_id}"


def marked_order(url: str) -> str:
    """Return the work order's id in a mark's address; empty if the address is no mark."""
    match = _MARK.search(url)
    return match["order"] if match is not None and url.endswith(match[0]) else ""


def bound_text(text: str, comments: Sequence[Comment], url: str) -> tuple[str, tuple[Comment, ...]]:
    """Return `text` and the newest comments, cut to `ISSUE_LIMIT_BYTES` in all; a note at each cut has `url`."""
    content = text.encode(errors="replace")
    if len(content) > ISSUE_LIMIT_BYTES:
        text = f"{content[:ISSUE_LIMIT_BYTES].decode(errors='ignore')}\n\n[cut here; the whole text is at {url}]"
    return text, newest_comments(comments, max(ISSUE_LIMIT_BYTES - len(content), 0), url)
