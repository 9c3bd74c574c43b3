"""The parts of Linear's answers that Septet uses."""

from typing import Final, Generic, TypeVar

from pydantic import Field

from septet.forges.answers import Foreign
from septet.forges.limits import TITLE_LIMIT
from septet.forges.values import Comment
from septet.trackers.tracker import IssueMark, LabelledIssue, LabelSetter, TrackerIssue, bound_text, marked_order

N = TypeVar("N")
CLOSED: Final = ("completed", "canceled", "duplicate")
"""The types of states that count as closed for issues."""


class _Named(Foreign):
    name: str = ""


class _Nodes(Foreign, Generic[N]):
    nodes: tuple[N, ...] = ()


class _Page(Foreign):
    hasNextPage: bool
    endCursor: str | None = None


class _PagedNodes(_Nodes[N], Generic[N]):
    pageInfo: _Page

    def next_page(self) -> str | None:
        """Return the cursor of the next page; `None` if this page is the last."""
        return self.pageInfo.endCursor if self.pageInfo.hasNextPage else None


class _WithId(Foreign):
    id: str


class _User(_WithId):
    displayName: str = ""
    guest: bool = False


class _Bot(Foreign):
    name: str | None = None


class _Comment(Foreign):
    body: str
    createdAt: str
    user: _User | None = None
    botActor: _Bot | None = None
    externalUser: _Bot | None = None

    def comment(self) -> Comment:
        """Return the comment with its author, and the author's role in Linear's workspace."""
        if self.user is not None:
            return Comment(
                self.user.displayName, self.body, self.createdAt, "guest" if self.user.guest else "member"
            )
        other = self.botActor or self.externalUser or _Bot()
        return Comment(other.name or "", self.body, self.createdAt, "app" if self.botActor else "external")


class _Team(Foreign):
    key: str


class _Project(_WithId):
    slugId: str
    name: str


class IssueNode(_WithId):
    """An issue, as in the answer to the query `ISSUE`."""

    identifier: str
    title: str
    description: str | None = None
    url: str
    team: _Team
    project: _Project | None = None
    labels: _Nodes[_Named] = _Nodes()
    comments: _Nodes[_Comment] = _Nodes()

    def issue(self) -> TrackerIssue:
        """Return the issue, with texts cut to the limits for agents."""
        ordered = sorted((each.comment() for each in self.comments.nodes), key=lambda each: each.created_at)
        body, comments = bound_text(self.description or "", ordered, self.url)
        project = self.project
        return TrackerIssue(
            id=self.id,
            key=self.identifier,
            title=" ".join(self.title.split())[:TITLE_LIMIT],
            body=body,
            url=self.url,
            group=self.team.key,
            projects=(project.slugId, project.id, project.name) if project is not None else (),
            labels=tuple(dict.fromkeys(each.name for each in self.labels.nodes)),
            comments=comments,
        )


class TrackedIssueAnswer(Foreign):
    """The answer to the query `ISSUE`: one issue."""

    issue: IssueNode


class _Attachment(Foreign):
    url: str
    createdAt: str
    metadata: dict[str, object] = Field(default_factory=dict)
    creator: _WithId | None = None


class _Attachments(_Nodes[_Attachment]):
    def oldest_mark(self, viewer: _WithId) -> IssueMark | None:
        """Return the oldest mark that the account `viewer` made; `None` if there is no such mark."""
        own = [each for each in self.nodes if each.creator == viewer and marked_order(each.url)]
        first = min(own, key=lambda each: each.createdAt, default=None)
        return IssueMark(marked_order(first.url), str(first.metadata.get("claimant", ""))) if first else None


class _Marked(Foreign):
    attachments: _Attachments


class MarksAnswer(Foreign):
    """The answer to the query `MARKS`: the marks on one issue."""

    viewer: _WithId
    issue: _Marked

    def oldest(self) -> IssueMark | None:
        """Return the oldest mark that the key's own account made; `None` if there is no such mark."""
        return self.issue.attachments.oldest_mark(self.viewer)


class _Labelled(_Marked):
    number: float
    delegate: _WithId | None = None


class IssuesAnswer(Foreign):
    """The answer to the query `ISSUES`: one page of issues."""

    viewer: _WithId
    issues: _PagedNodes[_Labelled]

    def available_issues(self) -> tuple[LabelledIssue, ...]:
        """Return the page's issues that are delegated to nobody or to Septet."""
        return tuple(
            LabelledIssue(int(each.number), each.attachments.oldest_mark(self.viewer))
            for each in self.issues.nodes
            if each.delegate in {None, self.viewer}
        )


class _Setter(_User):
    app: bool = False

    def setter(self, viewer: _WithId) -> LabelSetter:
        """Return the account with its role in Linear's workspace; the key's own account counts as a member."""
        is_other_app = self.app and self.id != viewer.id
        return LabelSetter(self.displayName, "app" if is_other_app else "guest" if self.guest else "member")


class _Change(Foreign):
    createdAt: str
    actor: _Setter | None = None
    botActor: _Bot | None = None
    addedLabels: tuple[_Named, ...] | None = None

    def setter(self, viewer: _WithId) -> LabelSetter:
        """Return the account that made the change; an automation in Linear has no account."""
        if self.actor is not None:
            return self.actor.setter(viewer)
        return LabelSetter(self.botActor.name or "", "app") if self.botActor is not None else LabelSetter()


class _WithHistory(Foreign):
    creator: _Setter | None = None
    history: _PagedNodes[_Change]


class LabelledAnswer(Foreign):
    """The answer to the query `LABELLED`: one page of an issue's history."""

    viewer: _WithId
    issue: _WithHistory

    def setters(self, label: str) -> tuple[tuple[str, LabelSetter], ...]:
        """Return the events on this page of the history that set the label: the time and the account of each."""
        return tuple(
            (each.createdAt, each.setter(self.viewer))
            for each in self.issue.history.nodes
            if label in {added.name for added in each.addedLabels or ()}
        )

    def creator(self) -> LabelSetter:
        """Return the account that created the issue and set the labels that the history does not list."""
        return self.issue.creator.setter(self.viewer) if self.issue.creator is not None else LabelSetter()


class _State(Foreign):
    type: str


class _TeamState(_WithId):
    position: float


class _StatesOfTeam(Foreign):
    states: _Nodes[_TeamState]


class _ToStart(_WithId):
    state: _State
    delegate: _WithId | None = None
    team: _StatesOfTeam


class _Viewer(_WithId):
    app: bool = False


class StartAnswer(Foreign):
    """The answer to the query `START`: what must be known before an issue is started."""

    viewer: _Viewer
    issue: _ToStart

    def changes(self) -> dict[str, str]:
        """Return the changes that start the issue; an issue without a delegate gets the key's app as delegate."""
        changes: dict[str, str] = {}
        first = min(self.issue.team.states.nodes, key=lambda each: each.position, default=None)
        if first is not None and self.issue.state.type not in {"started", *CLOSED}:
            changes["stateId"] = first.id
        if self.viewer.app and not self.issue.delegate:
            changes["delegateId"] = self.viewer.id
        return changes


class ActivityAnswer(Foreign):
    """The answer to the query `ACTIVITY`: one activity of a session."""

    agentActivity: _WithId


class DoneAnswer(Foreign):
    """The answer to a mutation, from which Septet reads nothing."""
