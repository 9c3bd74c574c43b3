"""What Linear answers, as far as it is used."""

from pydantic import BaseModel, ConfigDict, Field

from septet.forges.forge import Comment
from septet.trackers.tracker import IssueMark, TrackerIssue, bound_text, marked_order, one_line_title


class LinearAnswer(BaseModel):
    """A part of what Linear answers."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Named(LinearAnswer):
    name: str = ""


class _User(LinearAnswer):
    id: str
    displayName: str = ""  # noqa: N815 -- Linear's names
    guest: bool = False


class _Comment(LinearAnswer):
    body: str
    createdAt: str  # noqa: N815
    user: _User | None = None
    botActor: _Named | None = None  # noqa: N815
    externalUser: _Named | None = None  # noqa: N815

    def comment(self) -> Comment:
        """Return it with who wrote it, and what that one is to the workspace."""
        if self.user is not None:
            return Comment(
                self.user.displayName, self.body, self.createdAt, "guest" if self.user.guest else "member"
            )
        other = self.botActor or self.externalUser or _Named()
        return Comment(other.name, self.body, self.createdAt, "app" if self.botActor else "external")


class _Comments(LinearAnswer):
    nodes: tuple[_Comment, ...] = ()


class _Labels(LinearAnswer):
    nodes: tuple[_Named, ...] = ()


class _Team(LinearAnswer):
    key: str


class _Project(LinearAnswer):
    id: str
    slugId: str  # noqa: N815
    name: str


class IssueNode(LinearAnswer):
    """An issue."""

    id: str
    identifier: str
    title: str
    description: str | None = None
    url: str
    team: _Team
    project: _Project | None = None
    labels: _Labels = _Labels()
    comments: _Comments = _Comments()

    def issue(self) -> TrackerIssue:
        """Return it within the bounds of what agents get."""
        ordered = sorted((each.comment() for each in self.comments.nodes), key=lambda each: each.created_at)
        body, comments = bound_text(self.description or "", ordered, self.url)
        project = self.project
        return TrackerIssue(
            id=self.id,
            key=self.identifier,
            title=one_line_title(self.title),
            body=body,
            url=self.url,
            group=self.team.key,
            projects=(project.slugId, project.id, project.name) if project is not None else (),
            labels=tuple(dict.fromkeys(each.name for each in self.labels.nodes)),
            comments=comments,
        )


class TrackedIssueAnswer(LinearAnswer):
    """What `ISSUE` is answered."""

    issue: IssueNode


class _Creator(LinearAnswer):
    id: str


class _Attachment(LinearAnswer):
    url: str
    createdAt: str  # noqa: N815
    metadata: dict[str, object] = Field(default_factory=dict)
    creator: _Creator | None = None


class _Attachments(LinearAnswer):
    nodes: tuple[_Attachment, ...] = ()


class _Marked(LinearAnswer):
    attachments: _Attachments


class MarksAnswer(LinearAnswer):
    """What `MARKS` is answered."""

    viewer: _Creator
    issue: _Marked

    def oldest(self) -> IssueMark | None:
        """Return the oldest mark of our own: what somebody else has attached is none."""
        own = [
            each for each in self.issue.attachments.nodes if each.creator == self.viewer and marked_order(each.url)
        ]
        first = min(own, key=lambda each: each.createdAt, default=None)
        if first is None:
            return None
        return IssueMark(marked_order(first.url), str(first.metadata.get("claimant", "")))


class _State(LinearAnswer):
    type: str


class _TeamState(LinearAnswer):
    id: str
    position: float


class _TeamStates(LinearAnswer):
    nodes: tuple[_TeamState, ...] = ()


class _StatesOfTeam(LinearAnswer):
    states: _TeamStates


class _ToStart(LinearAnswer):
    id: str
    state: _State
    team: _StatesOfTeam


class StartAnswer(LinearAnswer):
    """What `START` is answered."""

    issue: _ToStart

    def next_state(self) -> str | None:
        """Return the state to move to; `None` where somebody has begun, or the team has no such state."""
        if self.issue.state.type in {"started", "completed", "canceled", "duplicate"}:
            return None
        first = min(self.issue.team.states.nodes, key=lambda each: each.position, default=None)
        return first.id if first is not None else None


class _Activity(LinearAnswer):
    id: str


class ActivityAnswer(LinearAnswer):
    """What `ACTIVITY` is answered."""

    agentActivity: _Activity  # noqa: N815


class DoneAnswer(LinearAnswer):
    """What a mutation is answered."""
