"""Things on a forge: issues, comments, pull requests, reviews, checks. People's text is untrusted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from septet.contracts.names import LOCAL_PULL
from septet.errors import ForgeError, InvalidInputError
from septet.forges.limits import BODIES_LIMIT, BODY_LIMIT, TITLE_LIMIT
from septet.system.masking import mask
from septet.system.text import without_controls

PullRequestState = Literal["open", "closed", "merged"]
ReviewState = Literal["approved", "changes_requested", "commented"]
CheckState = Literal["pending", "success", "failure"]
_NUMBERED: Final = re.compile(r"/(?:pull|pulls|merge_requests)/(\d{1,18})/?$")


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment on an issue or a pull request."""

    author: str
    body: str
    created_at: str = ""
    """The time of the comment: ISO 8601, UTC."""
    standing: str = ""
    """The author's role in the repository, in the forge's word in lower case, such as `owner`, `member`,
    `maintainer`, `collaborator` or `none`; empty if the forge does not report it."""

    @property
    def is_note(self) -> bool:
        """Whether this is Septet's own note about comments that were left out; only such a note has no time."""
        return not self.created_at and self.author == "septet"


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue as it was when it was read."""

    number: int
    title: str
    body: str
    url: str
    state: Literal["open", "closed"] = "open"
    labels: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    """The comments from the oldest to the newest."""
    author: str = ""
    """The author's account; empty if the forge does not report the author."""
    text_sha256: str = field(default="", compare=False)
    """The hash of title and body, before they were cut."""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as it was when it was read."""

    number: int
    url: str
    head: str
    base: str
    head_sha: str
    state: PullRequestState = "open"
    warnings: tuple[str, ...] = ()
    """What could not be added, such as a label."""
    conflicts: bool = field(default=False, compare=False)
    """Whether the forge reports a conflict with the base; false until the forge has checked."""
    base_sha: str = field(default="", compare=False)
    """The commit of the base branch; empty if the forge does not report the commit."""
    body: str = field(default="", compare=False, repr=False)
    updated_at: str = field(default="", compare=False)
    """The time of the last change, in the forge's own form."""
    author: str = field(default="", compare=False)
    """The author's account; empty if the forge does not report the author."""

    def is_of(self, work_order_id: str) -> bool:
        """Return whether the pull request is a work order's, by the hidden mark in its body."""
        return marker_of(work_order_id) in self.body


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch as the forge reports it."""

    name: str
    sha: str


@dataclass(frozen=True, slots=True)
class Review:
    """A review of a pull request."""

    author: str
    state: ReviewState
    body: str = ""
    commit: str = ""
    """The reviewed commit; empty if the forge does not report the commit."""
    standing: str = ""
    """The author's role in the repository, in the form of `Comment.standing`."""
    id: str = ""
    """The review's id; empty if the forge has no such ids."""


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """The result of a check, a status or a pipeline's job on a commit."""

    name: str
    state: CheckState
    url: str = ""
    id: str = ""
    """The id of the check's log; empty if there is no log."""
    summary: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NewComment:
    """A new comment, and the issue or pull request that it is on."""

    id: int
    number: int
    is_on_pull_request: bool
    author: str
    body: str
    created_at: str
    """The time of the comment: ISO 8601."""


@dataclass(frozen=True, slots=True)
class ThreadComment:
    """One comment of a `ReviewThread`."""

    id: str
    comment: Comment


@dataclass(frozen=True, slots=True)
class ReviewThread:
    """The comments on one place in a pull request's files, or one discussion of the pull request."""

    id: str
    """The id that a reply names."""
    path: str
    line: int | None
    """The line in the pull request's version of the file; `None` if there is no such line."""
    comments: tuple[ThreadComment, ...]
    """At least one comment, from the oldest to the newest."""


@dataclass(frozen=True, slots=True)
class NewPullRequest:
    """A pull request to open: its branches, its text, its labels, and its reviewers and assignees."""

    head: str
    base: str
    title: str
    body: str
    marker: str
    """The work order's id, which the body carries invisibly."""
    draft: bool = False
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    head_project: str = ""
    """The fork with the branch `head`, such as `me/r`; empty if the repository has the branch."""
    notice: str = ""
    """The first line of the body."""

    @property
    def bounded_title(self) -> str:
        """The title on one line, cut to the limit."""
        return self.titled()

    def titled(self, draft: str = "", limit: int = TITLE_LIMIT) -> str:
        """Return the title on one line; the title of a draft begins with `draft`, which counts towards `limit`."""
        title = " ".join(mask(without_controls(self.title)).split())
        return f"{draft if self.draft else ''}{title}"[:limit].rstrip()

    @property
    def marked_body(self) -> str:
        """The text to send: the line `notice`, the body cut to the limit, and the work order's hidden mark."""
        return self._below_notice(self._own_part)

    @property
    def _own_part(self) -> str:
        body = mask(without_controls(self.body))
        body = body if len(body) <= BODY_LIMIT else f"{body[:BODY_LIMIT]}\n\n[cut here]"
        return f"{body.rstrip()}\n\n{marker_of(self.marker)}\n"

    def added_to(self, body: str) -> str:
        """Return a pull request's body with this work order added, unless the body has the work order's mark.

        Raises:
            ForgeError: The body would be too long.
        """
        longer = self._below_notice(body)
        if marker_of(self.marker) not in body:
            longer = f"{longer.rstrip()}\n\n## {self.bounded_title}\n\n{self._own_part}"
        if longer != body and len(longer) > BODIES_LIMIT:
            raise ForgeError("The pull request's text is full.")
        return longer

    def _below_notice(self, body: str) -> str:
        """Return a body with the notice as its first line, which the body may have already."""
        notice = mask(without_controls(self.notice))
        return body if not notice or body.partition("\n")[0] == notice else f"{notice}\n\n{body}"


@dataclass(frozen=True, slots=True)
class RecentPullRequests:
    """One page of a repository's pull requests in every state, the latest change first."""

    pull_requests: tuple[PullRequest, ...]
    is_all: bool
    """Whether no page follows."""
    etag: str = ""
    """The ETag for the next request, by which the forge can answer that nothing has changed."""


def marker_of(work_order_id: str) -> str:
    """Return the hidden mark of a work order, which rendered Markdown does not show."""
    return f"<!-- septet: {work_order_id} -->"


def ended_one(pull_request: PullRequest) -> ForgeError:
    """Return the error for a closed or merged pull request, which Septet neither reopens nor replaces."""
    remedy = "Reopen it there and run `septet retry`, or start another work order for the rest."
    if LOCAL_PULL.fullmatch(pull_request.url):
        remedy = "Start another work order for the rest."
    message = f"{pull_request.url} of this work order is {pull_request.state}"
    return ForgeError(f"{message}, and Septet does not open a second one.", remedy=remedy)


def pull_request_number(url: str) -> int:
    """Return the number in the address of a pull request.

    Raises:
        InvalidInputError: `url` is not the address of a pull request.
    """
    match = _NUMBERED.search(url)
    if match is None:
        raise InvalidInputError(
            f"{url!r} is not the address of a pull request.",
            remedy="It ends with /pull/NUMBER, /pulls/NUMBER or /merge_requests/NUMBER.",
        )
    return int(match[1])


def label_names(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels without surrounding spaces, each once, in order."""
    return tuple(dict.fromkeys(label.strip() for label in labels if label.strip()))
