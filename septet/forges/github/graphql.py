"""Facts that only GitHub's GraphQL API reports: the editors of an issue's body, and an App key's account."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.answers import Foreign
from septet.forges.http.own_account import BOT
from septet.forges.issue_history import IssueEdit, IssueHistory

if TYPE_CHECKING:
    from septet.forges.http.client import ApiClient

HISTORY: Final = """
query History($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    issue(number: $number) {
      lastEditedAt
      editor { __typename login }
      userContentEdits(first: 100) {
        nodes { editedAt editor { __typename login } }
        pageInfo { hasNextPage }
      }
      timelineItems(last: 100, itemTypes: [LABELED_EVENT, RENAMED_TITLE_EVENT]) {
        nodes {
          ... on LabeledEvent { createdAt actor { __typename login } label { name } }
          ... on RenamedTitleEvent { createdAt actor { __typename login } }
        }
        pageInfo { hasPreviousPage }
      }
    }
  }
}
"""
VIEWER: Final = "query Viewer { viewer { login } }"
_LIMITED: Final = frozenset({"RATE_LIMIT", "RATE_LIMITED"})
_RIGHTS: Final = "Give the token the permissions that `septet docs forges` lists, on this repository."


class _Actor(Foreign):
    kind: str = Field(default="", alias="__typename")
    login: str = ""

    @property
    def account(self) -> str:
        """The account, by its name in the REST API."""
        return f"{self.login}{BOT}" if self.kind == "Bot" and not self.login.endswith(BOT) else self.login


class _Edit(Foreign):
    editedAt: datetime
    editor: _Actor | None = None


class _EditPage(Foreign):
    hasNextPage: bool


class _Edits(Foreign):
    nodes: tuple[_Edit | None, ...] = ()
    pageInfo: _EditPage


class _Label(Foreign):
    name: str


class _Event(Foreign):
    createdAt: datetime
    actor: _Actor | None = None
    label: _Label | None = None
    """The label, if the event set one; `None` for a changed title."""


class _EventPage(Foreign):
    hasPreviousPage: bool


class _Events(Foreign):
    nodes: tuple[_Event | None, ...] = ()
    pageInfo: _EventPage


class IssueHistoryAnswer(Foreign):
    """The issue in the answer to `HISTORY`."""

    lastEditedAt: datetime | None = None
    editor: _Actor | None = None
    userContentEdits: _Edits | None = None
    timelineItems: _Events

    def history(self, label: str) -> IssueHistory:
        """Return an issue's edits and the label's setter; further pages mean that edits may be missing."""
        events, edits = [each for each in self.timelineItems.nodes if each is not None], self.userContentEdits
        of_label = [each for each in events if each.label is not None and each.label.name.lower() == label.lower()]
        last = of_label[-1] if of_label else None
        edited = [(each.actor, each.createdAt) for each in events if each.label is None]
        edited += [(each.editor, each.editedAt) for each in edits.nodes if each is not None] if edits else []
        if self.lastEditedAt is not None:
            edited.append((self.editor, self.lastEditedAt))
        has_more = self.timelineItems.pageInfo.hasPreviousPage or bool(edits and edits.pageInfo.hasNextPage)
        return IssueHistory(
            set_by=last.actor.account if last is not None and last.actor is not None else "",
            set_at=last.createdAt if last is not None else None,
            edits=tuple(IssueEdit(who.account if who else "", at) for who, at in edited),
            tells_all_edits=not has_more,
        )


class _Error(Foreign):
    type: str | None = ""
    message: str = ""


class _Reply(Foreign):
    data: dict[str, Any] | None = None
    errors: tuple[_Error, ...] | None = None


def ask_graphql(client: "ApiClient", document: str, variables: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a GraphQL answer; GitHub's refusals have a status of success.

    Raises:
        NotFoundError: The thing does not exist, or the token may not see it.
        ForgeUnavailableError: GitHub's limit is spent, or the operation did not finish.
        ForgeError: The forge refused.
    """
    address = f"{client.api.url.removesuffix('/v3')}/graphql"  # GitHub Enterprise has GraphQL next to the REST API
    reply = _Reply.model_validate_json(client.ask_graphql(address, document, variables).content)
    if not reply.errors:
        return reply.data or {}
    kinds, words = {each.type for each in reply.errors}, "; ".join(each.message for each in reply.errors)[:1000]
    message = f"GitHub refused ({client.what}): {words}"
    if kinds & _LIMITED:
        raise ForgeUnavailableError(f"GitHub wants to be left alone ({client.what}).")
    if "NOT_FOUND" in kinds:
        raise NotFoundError(message, remedy=_RIGHTS)
    if kinds <= {"", None}:  # the operation did not finish
        raise ForgeUnavailableError(message)
    raise ForgeError(message, remedy=_RIGHTS)
