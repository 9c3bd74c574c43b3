"""The forges GitHub and GitHub Enterprise, as far as they differ from `RestForge`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.answers import CommentAnswer, IssueAnswer, PermissionAnswer, PullRequestAnswer, ReviewAnswer
from septet.forges.github.answers import (
    HISTORY,
    VIEWER,
    CheckOutputAnswer,
    CheckRunsAnswer,
    CombinedStatusAnswer,
    GitHubReviewAnswer,
    IssueHistoryAnswer,
    ReferenceAnswer,
    RepositoryCommentAnswer,
    ReviewCommentAnswer,
    ask_graphql,
)
from septet.forges.http.api import BOT, HttpApi
from septet.forges.issue_history import IssueHistory
from septet.forges.issue_text import ISSUE_LIMIT_BYTES, bounded_issue
from septet.forges.limits import LOG_LIMIT, LOG_TAIL_BYTES, MOST_BRANCHES, MOST_COMMENT_PAGES, MOST_THREADS
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
class GitHubConversation(RestConversation):
    """The conversation on one pull request; see `Conversation`."""

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return review threads, even resolved ones: the REST API does not report which are resolved."""
        by_root: dict[int, list[ReviewCommentAnswer]] = {}
        for answer in self._review_comments():
            by_root.setdefault(answer.in_reply_to_id or answer.id, []).append(answer)
        threads = []
        for root, answers in by_root.items():
            comments = tuple(ThreadComment(str(each.id), each.comment()) for each in answers)
            line = answers[0].line or answers[0].original_line
            threads.append(ReviewThread(str(root), answers[0].path, line, comments))
        return tuple(threads[-MOST_THREADS:])

    def check_log(self, check: CommitCheck) -> str:
        """Return the end of a job's log, or else of a check's own output; see `Conversation.check_log`."""
        if not check.id.isdecimal():
            return check.summary[-LOG_LIMIT:]
        where = f"{check.name} in {self.forge.project}"
        try:
            with self.forge.asking(f"the log of {where}", tail_bytes=LOG_TAIL_BYTES) as client:
                return client.send("GET", f"actions/jobs/{check.id}/logs").text[-LOG_LIMIT:]
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError):  # a check of a program other than GitHub Actions
            with self.forge.asking(f"the check {where}") as client:
                return client.get(CheckOutputAnswer, f"check-runs/{check.id}").text[-LOG_LIMIT:]

    def replies(self, thread: ReviewThread) -> list[MarkedComment]:
        """Return the replies in a thread."""
        found = (each for each in self._review_comments() if str(each.in_reply_to_id) == thread.id)
        return [each.marked_comment() for each in found]

    def create_reply(self, thread: ReviewThread, text: str) -> None:
        """Add a reply to a thread."""
        path = f"{self.path}/comments/{thread.id}/replies"
        self.forge.write(f"a reply on {self.name}", "POST", path, {"body": text})

    def edit_reply(self, comment_id: int, text: str) -> None:
        """Replace the text of a reply."""
        path = f"pulls/comments/{comment_id}"
        self.forge.write(f"reply {comment_id} on {self.name}", "PATCH", path, {"body": text})

    def _review_comments(self) -> list[ReviewCommentAnswer]:
        with self.forge.asking(f"the reviews of {self.name}") as client:
            return client.read_list(ReviewCommentAnswer, f"{self.path}/comments")


RIGHTS: Final = "Give the token the permissions that `septet docs forges` lists, on this repository."
_REMEDIES: Final = {
    401: "Set SEPTET_GITHUB_TOKEN to a token that is valid for this forge, and restart the worker.",
    403: RIGHTS,
    404: "Check the name and number; a private repository that the token may not read looks the same. " + RIGHTS,
    410: "The issue was deleted, or the repository has no issues.",
}
_REFUSALS: Final = (
    ("no commits between", "The branch has nothing that its base does not have: there is nothing to merge."),
    ("draft pull requests are not supported", "Ask for a pull request that is not a draft."),
    ("pullrequest head", "The branch is not there: `septet retry` pushes it again."),
    ("pullrequest base", "Name a base that the repository has."),
)
_UNNAMED_SECONDS: Final = 60.0
"""The first pause in seconds if a refusal names no time; GitHub requires at least a minute."""
HEADERS: Final = {"X-GitHub-Api-Version": "2022-11-28"}
"""The header with the API's version, which GitHub Enterprise has too; newer versions have the same fields."""


def github_api(url: str, token: str | None = None) -> HttpApi:
    """Return the API of GitHub, or of a GitHub Enterprise server."""
    return HttpApi("GitHub", url, token, _REMEDIES, _REFUSALS, _UNNAMED_SECONDS, HEADERS)


@dataclass(frozen=True, slots=True)
class GitHubForge(RestForge):
    """One repository on GitHub."""

    name: ClassVar[str] = "github"
    open_query: ClassVar[dict[str, str | int]] = {"state": "open", "sort": "created", "direction": "asc"}
    recent_query: ClassVar[dict[str, str | int]] = {"state": "all", "sort": "updated", "direction": "desc"}
    review_form: ClassVar[type[ReviewAnswer]] = GitHubReviewAnswer

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`; see `Forge.branches`."""
        with self.asking(f"the branches of {self.project}") as client:
            answers = client.get(list[ReferenceAnswer], f"git/matching-refs/heads/{quote(prefix)}")
        return tuple(each.branch() for each in answers[:MOST_BRANCHES])

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return the results of check runs and statuses for a commit; see `Forge.checks`."""
        with self.asking(f"the checks of {commit[:12]} in {self.project}") as client:
            runs = client.get(CheckRunsAnswer, f"commits/{commit}/check-runs", {"per_page": 100})
            statuses = client.get(CombinedStatusAnswer, f"commits/{commit}/status", {"per_page": 100})
        return tuple({each.name: each for each in (*runs.checks(), *statuses.checks())}.values())

    def conversation(self, number: int) -> GitHubConversation:
        """Return the conversation on a pull request; see `FollowedForge.conversation`."""
        return GitHubConversation(self, number)

    def comments_since(self, since: datetime) -> tuple[NewComment, ...]:
        """Return the comments since `since`; see `CommentedForge.comments_since`."""
        query = {"sort": "created", "direction": "asc", "since": timestamp(since)}
        with self.asking(f"the comments in {self.project}") as client:
            answers = client.read_list(RepositoryCommentAnswer, "issues/comments", query, MOST_COMMENT_PAGES)
            return tuple(each.new_comment() for each in answers)

    def may_write(self, account: str) -> bool:
        """Return whether an account may push to the repository; see `Forge.may_write`."""
        if account.endswith(BOT):  # GitHub reports no App's permission; our own App counts as a writer
            return account.lower() == self.own_account().lower()
        try:
            with self.asking(f"what {account} may do in {self.project}") as client:
                path = f"collaborators/{quote(account, safe='')}/permission"
                return client.get(PermissionAnswer, path).may_write
        except NotFoundError:
            return False

    def ask_own_account(self) -> str:
        """Request the account of the key and return it; only GraphQL reports an App's account."""
        what = "whose key this is"
        try:
            with self.api.asking(what) as client:
                return client.get(self.user_form, "/user").login
        except ForgeUnavailableError:
            raise
        except ForgeError:  # the key of an App's installation
            with self.api.asking(what) as client:
                login = str(ask_graphql(client, VIEWER, {})["viewer"]["login"])
                return login if login.endswith(BOT) else f"{login}{BOT}"

    def is_own(self, account: str) -> bool:
        """Return whether an account is the worker's; if the worker's is unknown, every App's account counts."""
        own = self.own_account()
        return account.lower() == own.lower() if own else account.endswith(BOT)

    def issue_history(self, number: int, label: str = "") -> IssueHistory:
        """Return an issue's edits, and the account that set a label; see `TellingForge.issue_history`."""
        owner, _, name = self.now.partition("/")
        with self.asking(f"the history of {self.issue_name(number)}") as client:
            issue = ask_graphql(client, HISTORY, {"owner": owner, "name": name, "number": number})
            return IssueHistoryAnswer.model_validate(issue["repository"]["issue"]).history(label)

    def with_comments(self, client: "ApiClient", number: int, answer: IssueAnswer) -> Issue:
        """Return an issue with its newest comments, oldest first; the whole has at most `ISSUE_LIMIT_BYTES`."""
        comments: tuple[Comment, ...] = ()
        size = 0
        for page in range(-(-answer.comments // self.api.page_size), 0, -1):
            found = client.get(list[CommentAnswer], f"issues/{number}/comments", client.page_query({}, page))
            older = tuple(each.comment() for each in found)
            comments = (*older, *comments)
            size += sum(len(comment.body.encode(errors="replace")) for comment in older)
            if size > ISSUE_LIMIT_BYTES:
                break
        return bounded_issue(answer.issue(comments))

    def pulls_with_head(self, head: str, fork: str, state: str) -> tuple[PullRequest, ...]:
        """Return the pull requests of a branch; see `RestForge.pulls_with_head`."""
        project = self.name_now(fork or self.project)
        query: dict[str, str | int] = {
            "state": state,
            "head": f"{project.partition('/')[0]}:{head}",
            "per_page": self.api.page_size,
        }
        with self.asking(f"pull requests of {self.project}") as client:
            answers = client.get(list[PullRequestAnswer], "pulls", query)
        # GitHub ignores a head that it does not understand, and an owner may have several forks.
        return tuple(each.pull_request() for each in answers if each.head.is_of(project, head))

    def create_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Open a pull request and return it; call this only if the branch has no open pull request."""
        owner, _, name = self.name_now(new.head_project).partition("/")
        body: dict[str, Any] = {
            "title": new.bounded_title,
            "head": f"{owner}:{new.head}" if owner else new.head,
            "base": new.base,
            "body": new.marked_body,
            "draft": new.draft,
        }
        # If the fork has the same owner, only its name identifies the repository with the branch.
        if owner.lower() == self.now.partition("/")[0].lower():
            body["head_repo"] = name
        with self.asking(f"a pull request of {self.project}") as client:
            answer = client.post(PullRequestAnswer, "pulls", body)
            return asked_for(answer.pull_request(), self.now)

    def additions(self, new: NewPullRequest) -> Sequence[Addition]:
        """Return the labels, the reviewers and the assignees to add."""
        return (
            added_by("POST", "issues/{}/labels", "labels", label_names(new.labels)),
            added_by("POST", "pulls/{}/requested_reviewers", "reviewers", new.reviewers),
            added_by("POST", "issues/{}/assignees", "assignees", new.assignees),
        )

    def change_labels(self, client: "ApiClient", number: int, missing: str, surplus: Sequence[str]) -> None:
        """Add the label `missing` to an issue unless `missing` is empty, and remove the labels `surplus`."""
        if missing:
            client.write("POST", f"issues/{number}/labels", {"labels": [missing]})
        for each in surplus:
            client.write("DELETE", f"issues/{number}/labels/{quote(each, safe='')}")
