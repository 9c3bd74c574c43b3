"""Gitea and Forgejo: issues read, pull requests found by their branch or opened."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final, TypeVar
from urllib.parse import quote

from septet.errors import ForgeError, ForgeUnavailableError, InvalidInputError, NotFoundError
from septet.forges.forge import (
    MOST_BRANCHES,
    MOST_LABELLED,
    SHORT_TITLE_LIMIT,
    Branch,
    Comment,
    CommitCheck,
    Issue,
    NewPullRequest,
    PullRequest,
    Review,
    bounded_issue,
    bounded_list,
    label_names,
    no_fork_of,
)
from septet.forges.gitea.answers import GiteaIssueAnswer, GiteaPullRequestAnswer, GiteaRepositoryCommentAnswer
from septet.forges.gitea.client import PAGE, GiteaRepository, asking_gitea, is_own_account
from septet.forges.gitea.conversation import GiteaConversation
from septet.forges.http_client import ForgeApi
from septet.forges.issue_history import IssueEdit, IssueHistory
from septet.forges.new_comments import MOST_PAGES, NewComment
from septet.forges.opening import CommentPlace, MarkedComment, label_once, open_once, put_once
from septet.forges.polls import RecentPullRequests
from septet.forges.renames import NAMES, asked_for
from septet.system.timestamps import timestamp

_MOST_PAGES: Final = 50
_WRITERS: Final = frozenset({"owner", "admin", "write"})
_MOST_AUTHORS: Final = 20
"""The standing of so many is asked for, each by a question of its own; that of the others is not told."""
_LABEL_COLOR: Final = "#ededed"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GiteaForge:
    """One repository on Gitea or Forgejo."""

    project: str
    """`owner/name`."""
    api: ForgeApi
    name: str = "gitea"

    def issue(self, number: int) -> Issue:
        """Return an issue with its labels and comments; as `Forge.issue`."""
        with asking_gitea(self.api, self.project, self._issue_name(number)) as repository:
            answer = self._issue_answer(repository, number)
            comments = repository.issue_get_comments(number) if answer.comments else []
            issue = bounded_issue(answer.issue(tuple(each.comment("") for each in comments)))
            standings = self._standings(repository, issue.comments)
            return replace(
                issue,
                comments=tuple(replace(each, standing=standings.get(each.author, "")) for each in issue.comments),
            )

    def find_issues(self, numbers: Sequence[int]) -> tuple[Issue, ...]:
        """Return those of some issues that there are; as `Forge.find_issues`. One question for each."""
        issues: list[Issue] = []
        for number in numbers:
            with (
                suppress(NotFoundError),
                asking_gitea(self.api, self.project, self._issue_name(number)) as repository,
            ):
                issues.append(bounded_issue(self._issue_answer(repository, number).issue()))
        return tuple(issues)

    def open_issues(self, label: str) -> tuple[Issue, ...]:
        """Return the open issues with a label; as `Forge.open_issues`."""
        issues: list[Issue] = []
        what = f"the issues of {self.project} with the label {label}"
        with asking_gitea(self.api, self.project, what) as repository:
            for answer in _pages(partial(repository.issue_list_issues, state="open", labels=label)):
                # Gitea passes over a label that it does not know.
                if answer.pull_request is None and label in answer.issue().labels:
                    issues.append(answer.issue())
                if len(issues) > MOST_LABELLED:
                    break
        return bounded_list(issues, label, self.project)

    def expect_fork(self, fork: str) -> None:
        """See that `fork` is a fork of this repository; as `Forge.expect_fork`."""
        with asking_gitea(self.api, fork, f"the fork {fork}") as repository:
            answer = repository.repo_get()
        if not answer.is_fork_of(self._now):
            raise no_fork_of(fork, self._now, answer.parent.full_name if answer.parent else "")

    def find_pull_request(self, head: str, fork: str = "") -> PullRequest | None:
        """Return the open pull request of branch `head`; as `Forge.find_pull_request`."""
        for answer in self._with_head(fork, head, "open"):
            return answer.pull_request()
        return None

    def pull_requests_of(self, head: str, fork: str = "") -> tuple[PullRequest, ...]:
        """Return the pull requests of branch `head` in every state; as `Forge.pull_requests_of`.

        Gitea filters by no branch: of the last 2,500 that changed those are taken that have it.
        """
        return tuple(answer.pull_request() for answer in self._with_head(fork, head, "all"))

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a pull request as it is now; as `Forge.pull_request`: Gitea itself knows what became of it."""
        del commit
        what = f"pull request {number} of {self.project}"
        with asking_gitea(self.api, self.project, what) as repository:
            return asked_for(repository.repo_get_pull_request(number).pull_request(), self._now, number)

    def recent_pull_requests(self, etag: str = "", page: int = 1) -> RecentPullRequests | None:
        """Return the pull requests that changed last; as `PolledForge.recent_pull_requests`."""
        what, url = f"pull requests of {self.project}", f"{self.api.url}/repos/{quote(self._now)}/pulls"
        query: Mapping[str, str | int] = {"state": "all", "sort": "recentupdate", "limit": PAGE, "page": page}
        answer = self.api.list_if_changed(what, url, query, etag, list[GiteaPullRequestAnswer])
        if answer is None:
            return None
        answers, new_etag = answer
        return RecentPullRequests(tuple(each.pull_request() for each in answers), len(answers) < PAGE, new_etag)

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the one open pull request of `new.head`; as `Forge.open_pull_request`."""
        find = partial(self.find_pull_request, fork=new.head_project)
        return self._complete(open_once(find, self._create, new), new)

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Have a pull request tell of another work order; as `Forge.add_to_pull_request`."""
        what = f"the text of pull request {number} of {self.project}"
        with asking_gitea(self.api, self.project, what) as repository:
            there = repository.repo_get_pull_request(number).body or ""
            if (body := new.added_to(there)) != there:
                repository.repo_edit_pull_request(number, {"body": body})

    def issue_history(self, number: int, label: str = "") -> IssueHistory:
        """Return what became of an issue's text, and who set a label; as `TellingForge.issue_history`.

        Gitea tells of new titles, but not of new bodies.
        """
        what = f"the history of {self._issue_name(number)}"
        with asking_gitea(self.api, self.project, what) as repository:
            events = list(_pages(partial(repository.issue_get_comments_and_timeline, number)))
            updated_at = self._issue_answer(repository, number).updated_at
        last = max((each for each in events if each.sets(label)), key=lambda each: each.created_at, default=None)
        renamed = [each for each in events if each.type == "change_title"]
        return IssueHistory(
            set_by=last.user.login if last is not None and last.user is not None else "",
            set_at=last.created_at if last is not None else None,
            edits=tuple(IssueEdit(each.user.login if each.user else "", each.created_at) for each in renamed),
            tells_all_edits=False,
            updated_at=updated_at,
        )

    def is_own(self, account: str) -> bool:
        """Say whether an account is the one that the worker writes by; as `Forge.is_own`."""
        return is_own_account(self.api, account)

    def set_label(self, number: int, label: str, instead_of: Sequence[str]) -> None:
        """Have an issue carry one label instead of others; as `Forge.set_label`."""
        label_once(partial(self._labels_of, number), partial(self._change_labels, number), label, instead_of)

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`; as `Forge.branches`."""
        with asking_gitea(self.api, self.project, f"the branches of {self.project}") as repository:
            found = [each for each in _pages(repository.repo_list_branches) if each.name.startswith(prefix)]
        return tuple(each.branch() for each in found[:MOST_BRANCHES])

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return the reviews of a pull request; as `Forge.reviews`."""
        what = f"the reviews of pull request {number} of {self.project}"
        with asking_gitea(self.api, self.project, what) as repository:
            answers = list(_pages(partial(repository.repo_list_pull_reviews, number)))
        return tuple(review for each in answers if (review := each.review()) is not None)

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return what statuses say of a commit; as `Forge.checks`."""
        checks: dict[str, CommitCheck] = {}
        what = f"the checks of {commit[:12]} in {self.project}"
        with asking_gitea(self.api, self.project, what) as repository:
            for answer in _pages(partial(repository.repo_list_statuses_by_ref, commit)):
                checks.setdefault(answer.context, answer.check())
        return tuple(checks.values())

    def conversation(self, number: int) -> GiteaConversation:
        """Return what is said on a pull request; as `FollowedForge.conversation`."""
        return GiteaConversation(self.project, self.api, number)

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Have an issue carry one comment with a mark; as `Forge.put_comment`."""
        put_once(self._comment_place(number), marker, body)

    def has_comment(self, number: int, marker: str) -> bool:
        """Say whether an issue carries a comment with a mark; as `Forge.has_comment`."""
        return self._comment_place(number).has(marker)

    def comments_since(self, since: datetime) -> tuple[NewComment, ...]:
        """Return what was written since then; as `CommentedForge.comments_since`."""
        found: list[GiteaRepositoryCommentAnswer] = []
        with asking_gitea(self.api, self.project, f"the comments in {self.project}") as repository:
            for page in range(1, MOST_PAGES + 1):
                answers = repository.issue_get_repo_comments(timestamp(since), page)
                found += answers
                if len(answers) < PAGE:
                    break
        return tuple(answer.new_comment() for answer in found)

    def may_write(self, account: str) -> bool:
        """Say whether an account may push to the repository; as `Forge.may_write`.

        Gitea tells an account's right to administrators of a repository alone, and to others who can be assigned
        to its issues: who may push.
        """
        what = f"what {account} may do in {self.project}"
        try:
            with asking_gitea(self.api, self.project, what) as repository:
                return repository.repo_get_repo_permissions(account).permission in _WRITERS
        except NotFoundError:
            return False
        except ForgeUnavailableError:
            raise
        except ForgeError:
            with asking_gitea(self.api, self.project, what) as repository:
                return account.lower() in {each.login.lower() for each in repository.repo_get_assignees()}

    def _comment_place(self, number: int) -> CommentPlace:
        return CommentPlace(
            partial(self._marked_comments, number),
            partial(self._create_comment, number),
            self._edit_comment,
            partial(is_own_account, self.api),
        )

    def _marked_comments(self, number: int) -> list[MarkedComment]:
        what = f"the comments on {self._issue_name(number)}"
        with asking_gitea(self.api, self.project, what) as repository:
            return [each.marked_comment() for each in repository.issue_get_comments(number)]

    def _labels_of(self, number: int) -> tuple[str, ...]:
        with asking_gitea(self.api, self.project, self._issue_name(number)) as repository:
            return self._issue_answer(repository, number).issue().labels

    def _change_labels(self, number: int, missing: str, surplus: Sequence[str]) -> None:
        what = f"the labels of {self._issue_name(number)}"
        with asking_gitea(self.api, self.project, what) as repository:
            there = self._issue_answer(repository, number).labels or ()
            if missing:
                _add_labels(repository, number, [missing])
            for each in there:
                if each.name in surplus:
                    repository.issue_remove_label(number, each.id)

    def _create_comment(self, number: int, text: str) -> None:
        with asking_gitea(self.api, self.project, f"a comment on {self._issue_name(number)}") as repository:
            repository.issue_create_comment(number, text)

    def _edit_comment(self, comment_id: int, text: str) -> None:
        with asking_gitea(self.api, self.project, f"comment {comment_id} of {self.project}") as repository:
            repository.issue_edit_comment(comment_id, text)

    def _issue_name(self, number: int) -> str:
        return f"issue {number} of {self.project}"

    def _issue_answer(self, repository: GiteaRepository, number: int) -> GiteaIssueAnswer:
        answer = repository.issue_get_issue(number)
        if answer.pull_request is not None:
            raise InvalidInputError(
                f"issue: {number} of {self.project} is a pull request.", remedy="Name the issue it belongs to."
            )
        asked_for(answer.issue(), self.project, number)
        return answer

    def _standings(self, repository: GiteaRepository, comments: Sequence[Comment]) -> dict[str, str]:
        """Return what the newest authors are to the repository: `owner`, `collaborator` or `none`."""
        owner = self.project.partition("/")[0]
        authors = list(dict.fromkeys(comment.author for comment in reversed(comments)))
        standings: dict[str, str] = {}
        for author in authors[:_MOST_AUTHORS]:
            if author == owner:
                standings[author] = "owner"
                continue
            try:
                repository.repo_check_collaborator(author)
                standings[author] = "collaborator"
            except NotFoundError:
                standings[author] = "none"
            except ForgeUnavailableError:
                raise
            except ForgeError:
                break  # the token may not ask
        return standings

    @property
    def _now(self) -> str:
        """The name that the repository has now."""
        return NAMES.now(self.api.url, self.project)

    def _with_head(self, fork: str, head: str, state: str) -> list[GiteaPullRequestAnswer]:
        with asking_gitea(self.api, self.project, f"pull requests of {self.project}") as repository:
            answers = list(_pages(partial(repository.repo_list_pull_requests, state=state)))
        head_project = NAMES.now(self.api.url, fork) if fork else self._now
        return [
            each
            for each in answers
            if each.head.ref == head
            and each.head.repo is not None
            and each.head.repo.full_name.lower() == head_project.lower()
        ]

    def _create(self, new: NewPullRequest) -> PullRequest:
        owner = NAMES.now(self.api.url, new.head_project).partition("/")[0]
        with asking_gitea(self.api, self.project, f"a pull request of {self.project}") as repository:
            answer = repository.repo_create_pull_request(
                {
                    "head": f"{owner}:{new.head}" if owner else new.head,
                    "base": new.base,
                    "title": new.titled("WIP: ", SHORT_TITLE_LIMIT),
                    "body": new.marked_body,
                }
            )
        return asked_for(answer.pull_request(), self._now)

    def _complete(self, pull_request: PullRequest, new: NewPullRequest) -> PullRequest:
        """Set labels and people; what cannot be set is a warning, for the pull request is what counts."""
        number, warnings = pull_request.number, []
        actions: list[tuple[str, Sequence[str], Callable[[GiteaRepository], object]]] = [
            ("labels", label_names(new.labels), lambda it: _add_labels(it, number, label_names(new.labels))),
            (
                "reviewers",
                new.reviewers,
                lambda it: it.repo_create_pull_review_requests(number, list(new.reviewers)),
            ),
            (
                "assignees",
                new.assignees,
                lambda it: it.repo_edit_pull_request(number, {"assignees": list(new.assignees)}),
            ),
        ]
        for what, names, act in actions:
            if not names:
                continue
            try:
                with asking_gitea(self.api, self.project, f"the {what} of {pull_request.url}") as repository:
                    act(repository)
            except ForgeUnavailableError:
                raise
            except (ForgeError, NotFoundError) as error:
                warnings.append(f"{what} were not set ({', '.join(names)}): {error}")
        return replace(pull_request, warnings=tuple(warnings)) if warnings else pull_request


def _add_labels(repository: GiteaRepository, number: int, names: Sequence[str]) -> None:
    """Put labels on an issue or pull request; those that the repository does not have are made first."""
    ids = {label.name: label.id for label in _pages(repository.issue_list_labels)}
    for name in names:
        if name not in ids:
            ids[name] = repository.issue_create_label(name, _LABEL_COLOR).id
    repository.issue_add_label(number, [ids[name] for name in names])


def _pages(list_page: Callable[..., list[T]]) -> Iterator[T]:
    """Yield what a list holds, page by page, as far as the last page that is asked for."""
    for page in range(1, _MOST_PAGES + 1):
        answers = list_page(page=page)
        yield from answers
        if len(answers) < PAGE:
            return
