"""The interface that the engine uses for every forge. People's text on a forge is untrusted, and bounded."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol

from septet.contracts.issue_request import text_sha256
from septet.contracts.pull_request_names import LOCAL_PULL
from septet.errors import ForgeError, InvalidInputError
from septet.forges.renames import asked_for
from septet.system.masking import mask
from septet.system.text import without_controls

ISSUE_LIMIT_BYTES: Final = 256 * 1024
"""The most that an issue's body and comments may hold together."""
MOST_LABELLED: Final = 1000
"""The most issues that one label may name."""
TITLE_LIMIT: Final = 256
"""Characters of a title: GitHub's own limit."""
SHORT_TITLE_LIMIT: Final = 255
"""Characters of a title on GitLab and Gitea, including the prefix of a draft."""
BODY_LIMIT: Final = 60_000
"""Characters of a pull request's body; GitHub takes 65,536."""
_BODIES_LIMIT: Final = 65_000
"""Characters of the body of a pull request that brings the work of several work orders."""
MOST_BRANCHES: Final = 1000
"""The most branches with one prefix that are read."""
PullRequestState = Literal["open", "closed", "merged"]
ReviewState = Literal["approved", "changes_requested", "commented"]
CheckState = Literal["pending", "success", "failure"]
_NUMBERED: Final = re.compile(r"/(?:pull|pulls|merge_requests)/(\d{1,18})/?$")


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment on an issue."""

    author: str
    body: str
    created_at: str = ""
    """ISO 8601, UTC."""
    standing: str = ""
    """The author's role in the repository, in the forge's own word in lower case, such as `owner`, `member`,
    `maintainer`, `collaborator` or `none`; empty if the forge does not report the role."""

    @property
    def is_note(self) -> bool:
        """Whether the comment is Septet's own note about other comments: a forge's comments have a time."""
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
    """From the oldest to the newest."""
    author: str = ""
    """Empty if the forge does not report the author."""
    text_sha256: str = field(default="", compare=False)
    """The hash of title and body before any cut."""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as the forge has it."""

    number: int
    url: str
    head: str
    """The branch that it brings."""
    base: str
    """The branch that it goes to."""
    head_sha: str
    state: PullRequestState = "open"
    warnings: tuple[str, ...] = ()
    """Additions that failed, such as a label."""
    conflicts: bool = field(default=False, compare=False)
    """Whether the forge reports a conflict with the base; false as long as the forge has not checked."""
    base_sha: str = field(default="", compare=False)
    """The commit of its base; empty if the forge does not report the commit."""
    body: str = field(default="", compare=False, repr=False)
    updated_at: str = field(default="", compare=False)
    """The time of the last change, in the forge's own form."""
    author: str = field(default="", compare=False)
    """Empty if the forge does not report the author."""

    def is_of(self, work_order_id: str) -> bool:
        """Return whether the pull request brings the work of a work order, by the mark in its body."""
        return marker_of(work_order_id) in self.body


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch as the forge has it."""

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
    """As `Comment.standing`."""
    id: str = ""
    """The forge's own id; empty if the forge has none."""


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """The result of a check, a status or a pipeline's job for a commit."""

    name: str
    state: CheckState
    url: str = ""
    id: str = ""
    """The forge's id for the check's log; empty if there is no log."""
    summary: str = field(default="", compare=False, repr=False)
    """The check's own summary."""


@dataclass(frozen=True, slots=True)
class NewPullRequest:
    """The content of a pull request that is to be opened."""

    head: str
    base: str
    title: str
    body: str
    marker: str
    """The work order's id; the body carries the id invisibly, so that people and programs find the work order."""
    draft: bool = False
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    """Accounts that are requested to review."""
    assignees: tuple[str, ...] = ()
    head_project: str = ""
    """The fork that holds `head`, such as `me/r`; empty if the repository itself holds `head`."""
    notice: str = ""
    """The first line of the body, before all other text."""

    @property
    def bounded_title(self) -> str:
        """The title on one line, within the limit."""
        return self.titled()

    def titled(self, draft: str = "", limit: int = TITLE_LIMIT) -> str:
        """Return the title on one line.

        Args:
            draft: The prefix of a draft's title on this forge.
            limit: Characters that the forge accepts, including the prefix.
        """
        title = " ".join(mask(without_controls(self.title)).split())
        return f"{draft if self.draft else ''}{title}"[:limit].rstrip()

    @property
    def marked_body(self) -> str:
        """The notice, the body within the limit, and the mark."""
        return self._below_notice(self._own_part)

    @property
    def _own_part(self) -> str:
        body = mask(without_controls(self.body))
        body = body if len(body) <= BODY_LIMIT else f"{body[:BODY_LIMIT]}\n\n[cut here]"
        return f"{body.rstrip()}\n\n{self._mark}\n"

    def added_to(self, body: str) -> str:
        """Return a pull request's body with this work order added; unchanged if the body already has the mark.

        Raises:
            ForgeError: The body would be too long.
        """
        longer = self._below_notice(body)
        if self._mark not in body:
            longer = f"{longer.rstrip()}\n\n## {self.bounded_title}\n\n{self._own_part}"
        if longer != body and len(longer) > _BODIES_LIMIT:
            raise ForgeError("The pull request's text is full.")
        return longer

    def _below_notice(self, body: str) -> str:
        """Return a body with the notice as its first line; unchanged if the body begins with the notice."""
        notice = mask(without_controls(self.notice))
        return body if not notice or body.partition("\n")[0] == notice else f"{notice}\n\n{body}"

    @property
    def _mark(self) -> str:
        return marker_of(self.marker)


def marker_of(work_order_id: str) -> str:
    """Return the mark of a work order; rendered Markdown does not show the mark."""
    return f"<!-- septet: {work_order_id} -->"


def no_fork_of(fork: str, project: str, parent: str = "") -> InvalidInputError:
    """Return the error for a named fork that is no fork of the project, or a fork of another `parent`."""
    return InvalidInputError(
        f"push_to: {fork} is not a fork of {project}" + (f", but of {parent}." if parent else "."),
        remedy=f"Fork {project} on the forge, and name that fork.",
    )


def ended_one(pull_request: PullRequest) -> ForgeError:
    """Return the error for an ended pull request, which Septet neither reopens nor replaces."""
    other = "tart another work order for the rest."
    is_local = LOCAL_PULL.fullmatch(pull_request.url) is not None
    return ForgeError(
        f"{pull_request.url} of this work order is {pull_request.state}, and Septet does not open a second one.",
        remedy=f"S{other}" if is_local else f"Reopen it there and run `septet retry`, or s{other}",
    )


class Forge(Protocol):
    """A forge, with the issues and pull requests of one repository."""

    @property
    def name(self) -> str:
        """`github`, `gitlab`, `gitea` or `local`."""

    def issue(self, number: int) -> Issue:
        """Return an issue.

        Raises:
            NotFoundError: The worker can see no issue of this number.
            InvalidInputError: The issue is in another repository now, or the repository was renamed.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def find_issues(self, numbers: Sequence[int]) -> tuple[Issue, ...]:
        """Return the existing issues among `numbers`, in that order, without their comments.

        Raises:
            InvalidInputError: A number is a pull request's, or an issue's of another repository now.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def open_issues(self, label: str) -> tuple[Issue, ...]:
        """Return the open issues with a label, without their comments, in the order of their numbers.

        Raises:
            InvalidInputError: There are more than `MOST_LABELLED`.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def expect_fork(self, fork: str) -> None:
        """Check that `fork`, such as `me/r`, is a fork of this repository on the same host.

        Raises:
            InvalidInputError: `fork` is no such fork, or the forge has no forks.
            NotFoundError: The worker can see no such repository.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def find_pull_request(self, head: str, fork: str = "") -> PullRequest | None:
        """Return the open pull request of branch `head`, by any account, or `None`.

        Args:
            head: The branch.
            fork: The fork that has it, such as `me/r`; empty: this repository.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def pull_requests_of(self, head: str, fork: str = "") -> tuple[PullRequest, ...]:
        """Return the pull requests of branch `head` in every state, by any account, the newest first.

        Args:
            head: The branch.
            fork: As for `find_pull_request`.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`, at most `MOST_BRANCHES`.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return the reviews of a pull request, from the oldest to the newest.

        Raises:
            NotFoundError: The worker can see no pull request of this number.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return the results of checks, statuses or pipelines for a commit: the newest of each name.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Put one comment with the mark of `marker` on an issue: edit the present comment, or create one.

        Raises:
            NotFoundError: The worker can see no issue of this number.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def has_comment(self, number: int, marker: str) -> bool:
        """Return whether an issue has a comment with the mark of `marker`.

        Raises:
            NotFoundError: The worker can see no issue of this number.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def may_write(self, account: str) -> bool:
        """Return whether an account may push to the repository, as the forge reports.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def is_own(self, account: str) -> bool:
        """Return whether an account is the worker's own.

        Raises:
            ForgeUnavailableError: The forge did not answer.
        """

    def set_label(self, number: int, label: str, instead_of: Sequence[str]) -> None:
        """Put `label` on an issue and remove the labels `instead_of`; all other labels stay.

        Raises:
            NotFoundError: The worker can see no issue of this number.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a pull request in its present state: open, merged or closed.

        Args:
            number: The number of the pull request.
            commit: The commit that it brings, as far as the caller knows; its branch may be gone.

        Raises:
            NotFoundError: The worker can see no pull request of this number.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the one open pull request of `new.head`: the present one, or else a new one.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Add another work order, whose work the pull request also brings, to its text, once.

        Raises:
            NotFoundError: The worker can see no pull request of this number.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused, or the text is full.
        """


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


def bounded_issue(issue: Issue) -> Issue:
    """Return the issue with at most `ISSUE_LIMIT_BYTES` of body and comments, with a note at each cut.

    The body has priority, then the newest comments, which have the present state.
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
        InvalidInputError: There are more than `MOST_LABELLED`, or one is of another repository than `project`.
    """
    if len(issues) > MOST_LABELLED:
        message = f"label: more than {MOST_LABELLED} open issues have the label {label}."
        raise InvalidInputError(message, remedy="Name the issues by their numbers, or use a narrower label.")
    issues = sorted(issues, key=lambda issue: issue.number)
    return tuple(bounded_issue(asked_for(issue, project)) for issue in issues)


def label_names(labels: Sequence[str]) -> tuple[str, ...]:
    """Return each label once, stripped, in order."""
    return tuple(dict.fromkeys(label.strip() for label in labels if label.strip()))
