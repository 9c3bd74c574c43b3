"""The forges Gitea and Forgejo, as far as they differ from `RestForge`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.answers import (
    CommentAnswer,
    IssueAnswer,
    PermissionAnswer,
    PullRequestForm,
    ReviewAnswer,
    UserAnswer,
)
from septet.forges.gitea.answers import (
    GiteaBranchAnswer,
    GiteaCommentAnswer,
    GiteaIssueAnswer,
    GiteaLabelAnswer,
    GiteaPullRequestAnswer,
    GiteaRepositoryCommentAnswer,
    GiteaReviewAnswer,
    GiteaReviewCommentAnswer,
    GiteaStatusAnswer,
    GiteaTimelineAnswer,
)
from septet.forges.http.api import HttpApi
from septet.forges.issue_history import IssueEdit, IssueHistory
from septet.forges.issue_text import bounded_issue
from septet.forges.limits import LOG_LIMIT, MOST_BRANCHES, MOST_COMMENT_PAGES, MOST_THREADS, SHORT_TITLE_LIMIT
from septet.forges.opening import Addition, MarkedComment, added_by
from septet.forges.renames import asked_for
from septet.forges.rest import RestForge
from septet.forges.rest_conversation import RestConversation
from septet.forges.values import (
    Branch,
    Comment,
    CommitCheck,
    Issue,
    NewComment,
    NewPullRequest,
    PullRequest,
    ReviewThread,
    ThreadComment,
    label_names,
)
from septet.system.text import timestamp

if TYPE_CHECKING:
    from septet.forges.http.client import ApiClient


@dataclass(frozen=True, slots=True)
class GiteaConversation(RestConversation):
    """The conversation on one pull request. The comments on one line of a file form a thread."""

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the unresolved threads of reviews; see `Conversation.threads`."""
        by_place: dict[tuple[str, int], list[GiteaReviewCommentAnswer]] = {}
        for answer in sorted(self._review_comments(), key=lambda each: each.id):
            by_place.setdefault((answer.path, answer.position), []).append(answer)
        threads = []
        for (path, line), answers in by_place.items():
            if not answers[0].resolver:
                comments = tuple(ThreadComment(str(each.id), each.comment()) for each in answers)
                threads.append(ReviewThread(str(answers[0].id), path, line or None, comments))
        return tuple(threads[-MOST_THREADS:])

    def check_log(self, check: CommitCheck) -> str:
        """Return the summary of a check, because its status names no log; see `Conversation.check_log`."""
        return check.summary[-LOG_LIMIT:]

    def replies(self, thread: ReviewThread) -> list[MarkedComment]:
        """Return the comments on the thread's line."""
        place = (thread.path, thread.line or 0)
        return [each.marked_comment() for each in self._review_comments() if (each.path, each.position) == place]

    def create_reply(self, thread: ReviewThread, text: str) -> None:
        """Create a review with a comment on the thread's line."""
        comment = {"path": thread.path, "new_position": thread.line or 0, "body": text}
        body = {"event": "COMMENT", "comments": [comment]}
        self.forge.write(f"a reply on {self.name}", "POST", f"{self.path}/reviews", body)

    def _review_comments(self) -> Iterator[GiteaReviewCommentAnswer]:
        path = f"{self.path}/reviews"
        with self.forge.asking(f"the reviews of {self.name}") as client:
            for review in client.read_list(GiteaReviewAnswer, path):
                if review.comments_count:
                    yield from client.get(list[GiteaReviewCommentAnswer], f"{path}/{review.id}/comments")


_PAGE: Final = 50
"""The largest page of Gitea's lists, unless its administrator allows more."""
_MOST_AUTHORS: Final = 20
"""The most authors whose role is read, with one request each; roles of others stay unknown."""
_RIGHTS: Final = "Give the token the scopes `write:issue` and `write:repository`."
_REMEDIES: Final = {
    401: "Set SEPTET_GITEA_TOKEN to a token that is valid for this forge, and restart the worker.",
    403: _RIGHTS,
    404: "Check the name and number; a private repository that the token may not read looks the same. " + _RIGHTS,
}


def gitea_api(url: str, token: str | None = None) -> HttpApi:
    """Return the API of a Gitea or Forgejo server."""
    return HttpApi("Gitea", url.rstrip("/"), token, _REMEDIES, page_field="limit", page_size=_PAGE)


@dataclass(frozen=True, slots=True)
class GiteaForge(RestForge):
    """One repository on Gitea or Forgejo."""

    name: ClassVar[str] = "gitea"
    open_query: ClassVar[dict[str, str | int]] = {"state": "open", "type": "issues"}
    recent_query: ClassVar[dict[str, str | int]] = {"state": "all", "sort": "recentupdate"}
    issue_form: ClassVar[type[IssueAnswer]] = GiteaIssueAnswer
    comment_form: ClassVar[type[CommentAnswer]] = GiteaCommentAnswer
    pull_form: ClassVar[type[PullRequestForm]] = GiteaPullRequestAnswer
    review_form: ClassVar[type[ReviewAnswer]] = GiteaReviewAnswer

    def issue_history(self, number: int, label: str = "") -> IssueHistory:
        """Return an issue's edits, and the account that set `label`; see `TellingForge.issue_history`.

        Gitea reports new titles, but not new bodies.
        """
        with self.asking(f"the history of {self.issue_name(number)}") as client:
            events = client.read_list(GiteaTimelineAnswer, f"issues/{number}/timeline")
            updated_at = self.read_issue(client, number).updated_at
        last = max((each for each in events if each.sets(label)), key=lambda each: each.created_at, default=None)
        renamed = [each for each in events if each.type == "change_title"]
        return IssueHistory(
            set_by=last.user.login if last is not None and last.user is not None else "",
            set_at=last.created_at if last is not None else None,
            edits=tuple(IssueEdit(each.user.login if each.user else "", each.created_at) for each in renamed),
            tells_all_edits=False,
            updated_at=updated_at,
        )

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`; see `Forge.branches`."""
        with self.asking(f"the branches of {self.project}") as client:
            found = client.read_list(GiteaBranchAnswer, "branches")
        return tuple(each.branch() for each in found if each.name.startswith(prefix))[:MOST_BRANCHES]

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return the newest status of each check of a commit; see `Forge.checks`."""
        with self.asking(f"the checks of {commit[:12]} in {self.project}") as client:
            answers = client.read_list(GiteaStatusAnswer, f"commits/{commit}/statuses", {"sort": "recentupdate"})
        checks: dict[str, CommitCheck] = {}
        for answer in answers:
            checks.setdefault(answer.context, answer.check())
        return tuple(checks.values())

    def conversation(self, number: int) -> GiteaConversation:
        """Return the conversation on a pull request; see `FollowedForge.conversation`."""
        return GiteaConversation(self, number)

    def comments_since(self, since: datetime) -> tuple[NewComment, ...]:
        """Return the comments since `since`; see `CommentedForge.comments_since`."""
        query = {"since": timestamp(since)}
        with self.asking(f"the comments in {self.project}") as client:
            answers = client.read_list(GiteaRepositoryCommentAnswer, "issues/comments", query, MOST_COMMENT_PAGES)
            return tuple(each.new_comment() for each in answers)

    def may_write(self, account: str) -> bool:
        """Return whether an account may push to the repository.

        Gitea reports permissions only to administrators. Everybody else can read the possible assignees, who are
        the accounts that may push.
        """
        what = f"what {account} may do in {self.project}"
        try:
            with self.asking(what) as client:
                path = f"collaborators/{quote(account, safe='')}/permission"
                return client.get(PermissionAnswer, path).may_write
        except NotFoundError:
            return False
        except ForgeUnavailableError:
            raise
        except ForgeError:
            with self.asking(what) as client:
                return account.lower() in {
                    each.login.lower() for each in client.get(list[UserAnswer], "assignees")
                }

    def read_comments(self, client: "ApiClient", thing: str) -> Iterable[GiteaCommentAnswer]:
        """Return all comments on an issue or a pull request, which Gitea sends on one page."""
        return client.get(list[GiteaCommentAnswer], self.comments_path(thing))

    def is_listed(self, issue: Issue, label: str) -> bool:
        """Return whether a listed issue has the label: Gitea lists all issues if it does not know the label."""
        return label in issue.labels

    def with_comments(self, client: "ApiClient", number: int, answer: IssueAnswer) -> Issue:
        """Return an issue with its newest comments and their authors' roles; see `RestForge.with_comments`."""
        found = self.read_comments(client, f"issues/{number}") if answer.comments else ()
        issue = bounded_issue(answer.issue(tuple(each.comment() for each in found)))
        standings = self._standings(client, issue.comments)
        comments = tuple(replace(each, standing=standings.get(each.author, "")) for each in issue.comments)
        return replace(issue, comments=comments)

    def pulls_with_head(self, head: str, fork: str, state: str) -> tuple[PullRequest, ...]:
        """Return the pull requests of a branch; see `RestForge.pulls_with_head`.

        Gitea cannot filter by branch, so the branch is searched in the 2,500 pull requests that changed last.
        """
        with self.asking(f"pull requests of {self.project}") as client:
            answers = client.read_list(GiteaPullRequestAnswer, "pulls", {**self.recent_query, "state": state})
        project = self.name_now(fork or self.project)
        return tuple(
            each.pull_request()
            for each in answers
            if each.head.repo is not None and each.head.is_of(project, head)
        )

    def create_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Open a pull request and return it; the caller has checked that the branch has no open pull request."""
        owner = self.name_now(new.head_project).partition("/")[0]
        body = {
            "head": f"{owner}:{new.head}" if owner else new.head,
            "base": new.base,
            "title": new.titled("WIP: ", SHORT_TITLE_LIMIT),
            "body": new.marked_body,
        }
        with self.asking(f"a pull request of {self.project}") as client:
            return asked_for(client.post(GiteaPullRequestAnswer, "pulls", body).pull_request(), self.now)

    def additions(self, new: NewPullRequest) -> Sequence[Addition]:
        """Return the labels, the reviewers and the assignees to add."""
        labels = label_names(new.labels)
        return (
            ("labels", labels, partial(_add_labels, labels)),
            added_by("POST", "pulls/{}/requested_reviewers", "reviewers", new.reviewers),
            added_by("PATCH", "pulls/{}", "assignees", new.assignees),
        )

    def change_labels(self, client: "ApiClient", number: int, missing: str, surplus: Sequence[str]) -> None:
        """Add the label `missing` to an issue unless `missing` is empty, and remove the labels `surplus`."""
        there = client.get(GiteaIssueAnswer, f"issues/{number}").labels or ()
        if missing:
            _add_labels([missing], client, number)
        for each in there:
            if each.name in surplus:
                client.write("DELETE", f"issues/{number}/labels/{each.id}")

    def _standings(self, client: "ApiClient", comments: Sequence[Comment]) -> dict[str, str]:
        """Return the roles of the newest comments' authors by account: `owner`, `collaborator` or `none`."""
        owner = self.project.partition("/")[0]
        authors = list(dict.fromkeys(comment.author for comment in reversed(comments)))
        standings: dict[str, str] = {}
        for author in authors[:_MOST_AUTHORS]:
            if author == owner:
                standings[author] = "owner"
                continue
            try:
                client.send("GET", f"collaborators/{quote(author, safe='')}")
                standings[author] = "collaborator"
            except NotFoundError:
                standings[author] = "none"
            except ForgeUnavailableError:
                raise
            except ForgeError:
                break  # the token may not read collaborators
        return standings


def _add_labels(names: Sequence[str], client: "ApiClient", number: int) -> None:
    """Add labels to an issue or pull request, and first create those that the repository does not have."""
    ids = {label.name: label.id for label in client.read_list(GiteaLabelAnswer, "labels")}
    for name in names:
        if name not in ids:
            ids[name] = client.post(GiteaLabelAnswer, "labels", {"name": name, "color": "#ededed"}).id
    client.write("POST", f"issues/{number}/labels", {"labels": [ids[name] for name in names]})
