"""What the engine asks of a forge, whichever it is. What people wrote there is untrusted text, and bounded."""

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
"""That of GitLab and Gitea, with the prefix of a draft."""
BODY_LIMIT: Final = 60_000
"""Characters of a pull request's body; GitHub takes 65,536."""
_BODIES_LIMIT: Final = 65_000
"""Characters of the body of one that brings the work of several work orders."""
MOST_BRANCHES: Final = 1000
"""The most branches with one prefix that are looked at."""
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
    """What the author is to the repository, in the forge's own word in lower case, such as `owner`, `member`,
    `maintainer`, `collaborator` or `none`; empty where the forge does not tell."""

    @property
    def is_note(self) -> bool:
        """Whether it is a note of Septet's own about other comments: those of a forge have a time."""
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
    """Empty where the forge does not tell."""
    text_sha256: str = field(default="", compare=False)
    """Of title and body, before anything was cut."""


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
    """What did not work on the side, such as a label."""
    conflicts: bool = field(default=False, compare=False)
    """Whether the forge says that it does not merge into its base; not where it has not looked yet."""
    base_sha: str = field(default="", compare=False)
    """Where its base stands, as far as the forge tells."""
    body: str = field(default="", compare=False, repr=False)
    updated_at: str = field(default="", compare=False)
    """When it changed last, in the forge's own form."""
    author: str = field(default="", compare=False)
    """Empty where the forge does not tell."""

    def is_of(self, work_order_id: str) -> bool:
        """Say whether it brings the work of a work order, by the mark in its body."""
        return marker_of(work_order_id) in self.body


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch as the forge has it."""

    name: str
    sha: str


@dataclass(frozen=True, slots=True)
class Review:
    """What somebody thinks of a pull request."""

    author: str
    state: ReviewState
    body: str = ""
    commit: str = ""
    """What was looked at; empty where the forge does not tell."""
    standing: str = ""
    """As `Comment.standing`."""
    id: str = ""
    """The forge's own; empty where it has none."""


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """What a check, a status or a job of a pipeline says of a commit."""

    name: str
    state: CheckState
    url: str = ""
    id: str = ""
    """By which the forge has its log; empty where it has none."""
    summary: str = field(default="", compare=False, repr=False)
    """What it says of itself."""


@dataclass(frozen=True, slots=True)
class NewPullRequest:
    """What a pull request is to be opened with."""

    head: str
    base: str
    title: str
    body: str
    marker: str
    """The work order's id; it stands invisibly in the body, so that people and programs find whose it is."""
    draft: bool = False
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    """Accounts that are asked for a review."""
    assignees: tuple[str, ...] = ()
    head_project: str = ""
    """The fork that holds `head`, such as `me/r`; empty where the repository itself does."""
    notice: str = ""
    """A line that stands first, before all other words on the pull request."""

    @property
    def bounded_title(self) -> str:
        """The title on one line, within the limit."""
        return self.titled()

    def titled(self, draft: str = "", limit: int = TITLE_LIMIT) -> str:
        """Return the title on one line.

        Args:
            draft: What stands in front of a draft's title on this forge.
            limit: Characters that the forge takes, with what stands in front.
        """
        title = " ".join(mask(without_controls(self.title)).split())
        return f"{draft if self.draft else ''}{title}"[:limit].rstrip()

    @property
    def marked_body(self) -> str:
        """The body within the limit, below the notice, and the marker."""
        return self._below_notice(self._own_part)

    @property
    def _own_part(self) -> str:
        body = mask(without_controls(self.body))
        body = body if len(body) <= BODY_LIMIT else f"{body[:BODY_LIMIT]}\n\n[cut here]"
        return f"{body.rstrip()}\n\n{self._mark}\n"

    def added_to(self, body: str) -> str:
        """Return the body of a pull request that brings this too; the same where it tells of it already.

        Raises:
            ForgeError: There is no room for it.
        """
        longer = self._below_notice(body)
        if self._mark not in body:
            longer = f"{longer.rstrip()}\n\n## {self.bounded_title}\n\n{self._own_part}"
        if longer != body and len(longer) > _BODIES_LIMIT:
            raise ForgeError("The pull request's text is full.")
        return longer

    def _below_notice(self, body: str) -> str:
        """Return a body with the notice as its first line; one that begins with it stays."""
        notice = mask(without_controls(self.notice))
        return body if not notice or body.partition("\n")[0] == notice else f"{notice}\n\n{body}"

    @property
    def _mark(self) -> str:
        return marker_of(self.marker)


def marker_of(work_order_id: str) -> str:
    """Return the mark of a work order, which people do not see in a text that is shown as Markdown."""
    return f"<!-- septet: {work_order_id} -->"


def no_fork_of(fork: str, project: str, parent: str = "") -> InvalidInputError:
    """Return the error of a repository that is named as a fork and is none, or one of another `parent`."""
    return InvalidInputError(
        f"push_to: {fork} is not a fork of {project}" + (f", but of {parent}." if parent else "."),
        remedy=f"Fork {project} on the forge, and name that fork.",
    )


def ended_one(pull_request: PullRequest) -> ForgeError:
    """Return the error of a work order whose pull request has ended: it is neither opened again nor replaced."""
    other = "tart another work order for the rest."
    is_local = LOCAL_PULL.fullmatch(pull_request.url) is not None
    return ForgeError(
        f"{pull_request.url} of this work order is {pull_request.state}, and Septet does not open a second one.",
        remedy=f"S{other}" if is_local else f"Reopen it there and run `septet retry`, or s{other}",
    )


class Forge(Protocol):
    """Where issues and pull requests live."""

    @property
    def name(self) -> str:
        """`github`, `gitlab`, `gitea` or `local`."""

    def issue(self, number: int) -> Issue:
        """Return an issue.

        Raises:
            NotFoundError: There is none of this number that the worker can see.
            InvalidInputError: It is in another repository now, or the repository has another name.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def find_issues(self, numbers: Sequence[int]) -> tuple[Issue, ...]:
        """Return those of some issues that there are, without their comments, in the order of `numbers`.

        Raises:
            InvalidInputError: A number is a pull request's, or an issue's of another repository now.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def open_issues(self, label: str) -> tuple[Issue, ...]:
        """Return the open issues with a label, without their comments, in the order of their numbers.

        Raises:
            InvalidInputError: There are more than `MOST_LABELLED`.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def expect_fork(self, fork: str) -> None:
        """See that `fork`, such as `me/r`, is a fork of this repository on the same host.

        Raises:
            InvalidInputError: It is not, or the forge has none.
            NotFoundError: There is no such repository that the worker can see.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def find_pull_request(self, head: str, fork: str = "") -> PullRequest | None:
        """Return the open pull request of branch `head`, whoever opened it, or `None`.

        Args:
            head: The branch.
            fork: The fork that has it, such as `me/r`; empty: this repository.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def pull_requests_of(self, head: str, fork: str = "") -> tuple[PullRequest, ...]:
        """Return the pull requests of branch `head` in every state, whoever opened them, the newest first.

        Args:
            head: The branch.
            fork: As for `find_pull_request`.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`, at most `MOST_BRANCHES`.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return the reviews of a pull request, from the oldest to the newest.

        Raises:
            NotFoundError: There is none of this number that the worker can see.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return what checks, statuses or pipelines say of a commit; one for each name, the newest.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Have an issue carry one comment with the mark of `marker`: a new one, or the one that is there, edited.

        Raises:
            NotFoundError: There is no issue of this number that the worker can see.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def has_comment(self, number: int, marker: str) -> bool:
        """Say whether an issue carries a comment with the mark of `marker`.

        Raises:
            NotFoundError: There is no issue of this number that the worker can see.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def may_write(self, account: str) -> bool:
        """Say whether an account may push to the repository, as the forge itself knows.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def is_own(self, account: str) -> bool:
        """Say whether an account is the one that the worker writes by.

        Raises:
            ForgeUnavailableError: The forge did not answer.
        """

    def set_label(self, number: int, label: str, instead_of: Sequence[str]) -> None:
        """Have an issue carry `label`, and none of `instead_of`; all its other labels stay.

        Raises:
            NotFoundError: There is no issue of this number that the worker can see.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a pull request as it is now: open, merged or closed.

        Args:
            number: Which one.
            commit: What it brings, as far as the caller knows; its branch may be gone.

        Raises:
            NotFoundError: There is none of this number that the worker can see.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the one open pull request of `new.head`: the one that is there, or else a new one.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Have a pull request tell of another work order whose work it brings as well, once.

        Raises:
            NotFoundError: There is none of this number that the worker can see.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused, or the text is full.
        """


def pull_request_number(url: str) -> int:
    """Return the number of a pull request by its address.

    Raises:
        InvalidInputError: It is not the address of a pull request.
    """
    match = _NUMBERED.search(url)
    if match is None:
        raise InvalidInputError(
            f"{url!r} is not the address of a pull request.",
            remedy="It ends with /pull/NUMBER, /pulls/NUMBER or /merge_requests/NUMBER.",
        )
    return int(match[1])


def bounded_issue(issue: Issue) -> Issue:
    """Return the issue with at most `ISSUE_LIMIT_BYTES` of body and comments, and a note where something was cut.

    The body comes first, then the newest comments: they say how things stand.
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
        InvalidInputError: There are more than `MOST_LABELLED`, or they are of another repository than `project`.
    """
    if len(issues) > MOST_LABELLED:
        message = f"label: more than {MOST_LABELLED} open issues have the label {label}."
        raise InvalidInputError(message, remedy="Name the issues by their numbers, or use a narrower label.")
    issues = sorted(issues, key=lambda issue: issue.number)
    return tuple(bounded_issue(asked_for(issue, project)) for issue in issues)


def label_names(labels: Sequence[str]) -> tuple[str, ...]:
    """Return each label once, in order."""
    return tuple(dict.fromkeys(label.strip() for label in labels if label.strip()))
