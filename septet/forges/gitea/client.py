"""Asking Gitea and Forgejo: the operations of their API that are used, each typed by what it answers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter
from pydantic_core import from_json

from septet.forges.gitea.answers import (
    GiteaBranchAnswer,
    GiteaCommentAnswer,
    GiteaIssueAnswer,
    GiteaLabelAnswer,
    GiteaPermissionAnswer,
    GiteaPullRequestAnswer,
    GiteaRepositoryAnswer,
    GiteaRepositoryCommentAnswer,
    GiteaReviewAnswer,
    GiteaReviewCommentAnswer,
    GiteaStatusAnswer,
    GiteaTimelineAnswer,
    GiteaUserAnswer,
)
from septet.forges.http_client import ForgeApi
from septet.forges.own_account import OWN_ACCOUNTS
from septet.forges.renames import NAMES

if TYPE_CHECKING:
    import httpx

PAGE: Final = 50
"""The most that Gitea puts on one page, unless its administrator allows more."""
_RIGHTS: Final = "Give the token the scopes `write:issue` and `write:repository`."
REMEDIES: Final = {
    401: "Set SEPTET_GITEA_TOKEN to a token that is valid for this forge, and restart the worker.",
    403: _RIGHTS,
    404: "Check the name and number; a private repository that the token may not read looks the same. " + _RIGHTS,
}

T = TypeVar("T")
Query = Mapping[str, str | int]
Body = Mapping[str, object]


@contextmanager
def asking_gitea(api: ForgeApi, project: str, what: str) -> Iterator["GiteaRepository"]:
    """Give the API of one repository for the block; errors as for `ForgeApi.asking`."""
    with api.asking(what) as client:
        yield GiteaRepository(client, f"{api.url}/repos/{quote(NAMES.now(api.url, project))}")


def is_own_account(api: ForgeApi, account: str) -> bool:
    """Say whether an account is the one that the key writes by; where it is not told, any may be.

    Raises:
        ForgeUnavailableError: Gitea did not answer.
    """

    def ask() -> str:
        with api.asking("whose key this is") as client:
            content = client.get(f"{api.url}/user").content
            return TypeAdapter(GiteaUserAnswer).validate_python(from_json(content)).login

    own = OWN_ACCOUNTS.name_of(api.url, api.token, ask)
    return not own or account.lower() == own.lower()


@dataclass(frozen=True, slots=True)
class GiteaRepository:
    """The API of one repository; each method is one operation, named as in the API's description."""

    client: "httpx.Client"
    url: str

    def repo_get(self) -> GiteaRepositoryAnswer:
        """`GET` of the repository itself."""
        return self._ask(GiteaRepositoryAnswer, "GET", "")

    def issue_get_issue(self, index: int) -> GiteaIssueAnswer:
        """`GET /issues/{index}`."""
        return self._ask(GiteaIssueAnswer, "GET", f"/issues/{index}")

    def issue_list_issues(self, *, state: str, labels: str, page: int) -> list[GiteaIssueAnswer]:
        """`GET /issues`, without pull requests."""
        query: Query = {"state": state, "type": "issues", "labels": labels, "page": page, "limit": PAGE}
        return self._ask(list[GiteaIssueAnswer], "GET", "/issues", query)

    def issue_get_comments(self, index: int) -> list[GiteaCommentAnswer]:
        """`GET /issues/{index}/comments`: all of them, for it has no pages."""
        return self._ask(list[GiteaCommentAnswer], "GET", f"/issues/{index}/comments")

    def issue_get_repo_comments(self, since: str, page: int) -> list[GiteaRepositoryCommentAnswer]:
        """`GET /issues/comments`: those on issues and on pull requests, from the oldest."""
        query: Query = {"since": since, "page": page, "limit": PAGE}
        return self._ask(list[GiteaRepositoryCommentAnswer], "GET", "/issues/comments", query)

    def issue_get_comments_and_timeline(self, index: int, page: int) -> list[GiteaTimelineAnswer]:
        """`GET /issues/{index}/timeline`, from the oldest."""
        query: Query = {"page": page, "limit": PAGE}
        return self._ask(list[GiteaTimelineAnswer], "GET", f"/issues/{index}/timeline", query)

    def issue_create_comment(self, index: int, body: str) -> GiteaCommentAnswer:
        """`POST /issues/{index}/comments`."""
        return self._ask(GiteaCommentAnswer, "POST", f"/issues/{index}/comments", body={"body": body})

    def issue_edit_comment(self, comment_id: int, body: str) -> GiteaCommentAnswer:
        """`PATCH /issues/comments/{id}`."""
        return self._ask(GiteaCommentAnswer, "PATCH", f"/issues/comments/{comment_id}", body={"body": body})

    def issue_list_labels(self, page: int) -> list[GiteaLabelAnswer]:
        """`GET /labels`."""
        return self._ask(list[GiteaLabelAnswer], "GET", "/labels", {"page": page, "limit": PAGE})

    def issue_create_label(self, name: str, color: str) -> GiteaLabelAnswer:
        """`POST /labels`."""
        return self._ask(GiteaLabelAnswer, "POST", "/labels", body={"name": name, "color": color})

    def issue_add_label(self, index: int, labels: list[int]) -> list[GiteaLabelAnswer]:
        """`POST /issues/{index}/labels`."""
        return self._ask(list[GiteaLabelAnswer], "POST", f"/issues/{index}/labels", body={"labels": labels})

    def issue_remove_label(self, index: int, label_id: int) -> None:
        """`DELETE /issues/{index}/labels/{id}`."""
        self._send("DELETE", f"/issues/{index}/labels/{label_id}")

    def repo_list_pull_requests(self, *, state: str, page: int) -> list[GiteaPullRequestAnswer]:
        """`GET /pulls`, the youngest change first."""
        query: Query = {"state": state, "sort": "recentupdate", "page": page, "limit": PAGE}
        return self._ask(list[GiteaPullRequestAnswer], "GET", "/pulls", query)

    def repo_get_pull_request(self, index: int) -> GiteaPullRequestAnswer:
        """`GET /pulls/{index}`."""
        return self._ask(GiteaPullRequestAnswer, "GET", f"/pulls/{index}")

    def repo_create_pull_request(self, body: Body) -> GiteaPullRequestAnswer:
        """`POST /pulls`."""
        return self._ask(GiteaPullRequestAnswer, "POST", "/pulls", body=body)

    def repo_edit_pull_request(self, index: int, body: Body) -> GiteaPullRequestAnswer:
        """`PATCH /pulls/{index}`."""
        return self._ask(GiteaPullRequestAnswer, "PATCH", f"/pulls/{index}", body=body)

    def repo_create_pull_review_requests(self, index: int, reviewers: list[str]) -> None:
        """`POST /pulls/{index}/requested_reviewers`."""
        self._send("POST", f"/pulls/{index}/requested_reviewers", body={"reviewers": reviewers})

    def repo_list_pull_reviews(self, index: int, page: int) -> list[GiteaReviewAnswer]:
        """`GET /pulls/{index}/reviews`."""
        return self._ask(list[GiteaReviewAnswer], "GET", f"/pulls/{index}/reviews", {"page": page, "limit": PAGE})

    def repo_get_pull_review_comments(self, index: int, review_id: int) -> list[GiteaReviewCommentAnswer]:
        """`GET /pulls/{index}/reviews/{id}/comments`: all of them, for it has no pages."""
        return self._ask(list[GiteaReviewCommentAnswer], "GET", f"/pulls/{index}/reviews/{review_id}/comments")

    def repo_create_pull_review(self, index: int, body: Body) -> GiteaReviewAnswer:
        """`POST /pulls/{index}/reviews`."""
        return self._ask(GiteaReviewAnswer, "POST", f"/pulls/{index}/reviews", body=body)

    def repo_list_branches(self, page: int) -> list[GiteaBranchAnswer]:
        """`GET /branches`."""
        return self._ask(list[GiteaBranchAnswer], "GET", "/branches", {"page": page, "limit": PAGE})

    def repo_list_statuses_by_ref(self, ref: str, page: int) -> list[GiteaStatusAnswer]:
        """`GET /commits/{ref}/statuses`, the newest first."""
        query: Query = {"sort": "recentupdate", "page": page, "limit": PAGE}
        return self._ask(list[GiteaStatusAnswer], "GET", f"/commits/{ref}/statuses", query)

    def repo_check_collaborator(self, collaborator: str) -> None:
        """`GET /collaborators/{collaborator}`.

        Raises:
            NotFoundError: The account is none.
        """
        self._send("GET", f"/collaborators/{quote(collaborator, safe='')}")

    def repo_get_repo_permissions(self, collaborator: str) -> GiteaPermissionAnswer:
        """`GET /collaborators/{collaborator}/permission`.

        Raises:
            NotFoundError: There is no such account.
        """
        return self._ask(GiteaPermissionAnswer, "GET", f"/collaborators/{quote(collaborator, safe='')}/permission")

    def repo_get_assignees(self) -> list[GiteaUserAnswer]:
        """`GET /assignees`: all who may push, for it has no pages."""
        return self._ask(list[GiteaUserAnswer], "GET", "/assignees")

    def _ask(
        self, form: type[T], method: str, path: str, query: Query | None = None, *, body: Body | None = None
    ) -> T:
        return TypeAdapter(form).validate_python(from_json(self._send(method, path, query, body=body)))

    def _send(self, method: str, path: str, query: Query | None = None, *, body: Body | None = None) -> bytes:
        response = self.client.request(method, self.url + path, params=query, json=body)
        return response.content
