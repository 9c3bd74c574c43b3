"""The tracker Linear: read issues, mark them, and write to people in conversations (*sessions*)."""

import hashlib
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from septet.contracts.tracker import SessionMessage
from septet.errors import SeptetError, TrackerError
from septet.system.masking import mask
from septet.system.text import without_controls
from septet.trackers.linear.answers import (
    CLOSED,
    ActivityAnswer,
    DoneAnswer,
    IssuesAnswer,
    LabelledAnswer,
    MarksAnswer,
    StartAnswer,
    TrackedIssueAnswer,
)
from septet.trackers.linear.api import LinearApi
from septet.trackers.tracker import IssueMark, LabelledIssue, LabelSetter, TrackerIssue, mark_url

_MOST_PAGES: Final = 20
"""The most pages of a list that are read: a thousand issues, or 2000 changes of an issue."""


@dataclass(frozen=True, slots=True)
class LinearTracker:
    """The tracker Linear, read and written with one key."""

    api: LinearApi

    def read_issue(self, issue_id: str) -> TrackerIssue:
        """Return an issue with its newest comments."""
        return self.api.ask(f"issue {issue_id}", ISSUE, {"id": issue_id}, TrackedIssueAnswer).issue.issue()

    def open_issues(self, team: str, label: str) -> tuple[LabelledIssue, ...]:
        """Return a team's open issues with a label; beyond `_MOST_PAGES` pages, the oldest may be missing."""
        wanted = {
            "team": {"key": {"eq": team}},
            "labels": {"some": {"name": {"eq": label}}},
            "state": {"type": {"nin": list(CLOSED)}},
        }
        what = f"the issues of team {team} with the label {label}"
        found: list[LabelledIssue] = []
        after: str | None = None
        for _ in range(_MOST_PAGES):
            answer = self.api.ask(what, ISSUES, {"filter": wanted, "after": after}, IssuesAnswer)
            found += answer.available_issues()
            if (after := answer.issues.next_page()) is None:
                break
        return tuple(sorted(found, key=lambda each: each.number))

    def label_setter(self, issue_id: str, label: str) -> LabelSetter:
        """Return the account that last set a label; unknown if the history has more than `_MOST_PAGES` pages.

        Linear's query promises no order, so the last setter may be on a page that was not read.
        """
        what = f"history of issue {issue_id}"
        setters: list[tuple[str, LabelSetter]] = []
        after: str | None = None
        for _ in range(_MOST_PAGES):
            answer = self.api.ask(what, LABELLED, {"id": issue_id, "after": after}, LabelledAnswer)
            setters += answer.setters(label)
            if (after := answer.issue.history.next_page()) is None:
                return max(setters, key=lambda each: each[0], default=("", answer.creator()))[1]
        return LabelSetter()

    def find_mark(self, issue_id: str) -> IssueMark | None:
        """Return the oldest mark of this installation on an issue; `None` for none.

        A mark is an attachment. Linear keeps one attachment per address on an issue, and reports who made it.
        """
        what = f"attachments of issue {issue_id}"
        return self.api.ask(what, MARKS, {"id": issue_id}, MarksAnswer).oldest()

    def put_mark(self, issue: TrackerIssue, mark: IssueMark) -> None:
        """Attach the mark to the issue; its address is made of the issue's address and the work order's id."""
        self._attach(
            issueId=issue.id,
            url=mark_url(issue, mark.order_id),
            title=f"Septet work order {mark.order_id}",
            metadata={"claimant": mark.claimant},
        )

    def say(self, message: SessionMessage) -> None:
        """Add the message to the session once: the message's key determines the id of Linear's entry."""
        digest = hashlib.sha256(f"{message.issue.session} {message.key}".encode()).digest()
        activity_id = str(UUID(bytes=digest[:16], version=4))
        text = mask(without_controls(message.text))
        content = {"type": message.kind, "body": text}
        if message.kind == "action":
            content = {"type": "action", "action": message.action, "parameter": mask(message.parameter)}
            content |= {"result": text} if text else {}
        fields: dict[str, Any] = {"id": activity_id, "agentSessionId": message.issue.session, "content": content}
        if message.plan_sha256:
            choice = {"label": "Approve this plan", "value": f"approve {message.plan_sha256}"}
            fields |= {"signal": "select", "signalMetadata": {"options": [choice]}}
        what = f"activity of session {message.issue.session}"
        try:
            self.api.ask(what, SAY, {"input": fields}, DoneAnswer)
        except TrackerError as error:
            if error.retryable or not self._is_said(activity_id):
                raise

    def attach(self, issue_id: str, session: str, url: str, title: str) -> None:
        """Attach the link `url` to the issue; show it in the session too, unless `session` is empty."""
        self._attach(issueId=issue_id, url=url, title=title)
        if session:
            links = {"addedExternalUrls": [{"label": title, "url": url}]}
            self.api.ask(f"links of session {session}", LINK, {"id": session, "input": links}, DoneAnswer)

    def mark_started(self, issue_id: str) -> None:
        """Move the issue to its team's first started state, and set the delegate; see `Tracker.mark_started`."""
        what = f"state of issue {issue_id}"
        answer = self.api.ask(what, START, {"id": issue_id}, StartAnswer)
        if changes := answer.changes():
            self.api.ask(what, MOVE, {"id": answer.issue.id, "input": changes}, DoneAnswer)

    def _attach(self, **fields: object) -> None:
        self.api.ask(f"attachment of issue {fields['issueId']}", ATTACH, {"input": fields}, DoneAnswer)

    def _is_said(self, activity_id: str) -> bool:
        try:
            self.api.ask(f"activity {activity_id}", ACTIVITY, {"id": activity_id}, ActivityAnswer)
        except SeptetError as error:
            if error.retryable:
                raise
            return False
        return True


ISSUE: Final = """
query Issue($id: String!) {
  issue(id: $id) {
    id identifier title description url
    team { key }
    project { id slugId name }
    labels(first: 50) { nodes { name } }
    comments(first: 100) {
      nodes { body createdAt user { id displayName guest } botActor { name } externalUser { name } }
    }
  }
}
"""
MARKS: Final = """
query Marks($id: String!) {
  viewer { id }
  issue(id: $id) { attachments(first: 250) { nodes { url createdAt metadata creator { id } } } }
}
"""
ISSUES: Final = """
query Issues($filter: IssueFilter!, $after: String) {
  viewer { id }
  issues(first: 50, after: $after, filter: $filter) {
    nodes {
      number
      delegate { id }
      attachments(first: 50) { nodes { url createdAt metadata creator { id } } }
    }
    pageInfo { hasNextPage endCursor }
  }
}
"""
LABELLED: Final = """
query Labelled($id: String!, $after: String) {
  viewer { id }
  issue(id: $id) {
    creator { id displayName guest app }
    history(first: 100, after: $after) {
      nodes { createdAt actor { id displayName guest app } botActor { name } addedLabels { name } }
      pageInfo { hasNextPage endCursor }
    }
  }
}
"""
START: Final = """
query Start($id: String!) {
  viewer { id app }
  issue(id: $id) {
    id
    state { type }
    delegate { id }
    team { states(first: 100, filter: { type: { eq: "started" } }) { nodes { id position } } }
  }
}
"""
ACTIVITY: Final = """
query Activity($id: String!) { agentActivity(id: $id) { id agentSession { id } } }
"""
ATTACH: Final = """
mutation Attach($input: AttachmentCreateInput!) { attachmentCreate(input: $input) { success } }
"""
SAY: Final = """
mutation Say($input: AgentActivityCreateInput!) { agentActivityCreate(input: $input) { success } }
"""
MOVE: Final = """
mutation Move($id: String!, $input: IssueUpdateInput!) { issueUpdate(id: $id, input: $input) { success } }
"""
LINK: Final = """
mutation Link($id: String!, $input: AgentSessionUpdateInput!) {
  agentSessionUpdate(id: $id, input: $input) { success }
}
"""
DOCUMENTS: Final = (ISSUE, MARKS, ISSUES, LABELLED, START, ACTIVITY, ATTACH, SAY, MOVE, LINK)
