"""Who set an issue's label, and who has changed its text since: whether what it says now is what was asked for."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, Protocol, runtime_checkable

from septet.contracts.issue_request import IssueRequest
from septet.errors import ForgeError, ForgeUnavailableError
from septet.forges.forge import Forge, Issue
from septet.system.text import cut, one_line
from septet.system.timestamps import timestamp

UnknownEdits = Literal["wait", "take"]
_DELIVERY_LAGS: Final = timedelta(minutes=5)
"""A webhook that came so soon after a label was set tells of the text that stood there then."""
_WHY_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class IssueEdit:
    """A change of an issue's title or body."""

    author: str
    """Empty where the forge does not tell."""
    at: datetime


@dataclass(frozen=True, slots=True)
class IssueHistory:
    """What a forge tells of an issue's past."""

    set_by: str = ""
    """Who set the label that was asked about, the last time; empty where nobody is told."""
    set_at: datetime | None = None
    edits: tuple[IssueEdit, ...] = ()
    tells_all_edits: bool = True
    updated_at: datetime | None = None
    """When anything on the issue changed last, where the forge does not tell all edits of its text."""

    def may_have_changed_since(self, moment: datetime) -> bool:
        """Say whether there may be an edit since then of which the forge does not tell."""
        return not self.tells_all_edits and (self.updated_at is None or self.updated_at > moment)


@runtime_checkable
class TellingForge(Forge, Protocol):
    """A forge that tells who did what to an issue."""

    def issue_history(self, number: int, label: str = "") -> IssueHistory:
        """Return what became of an issue's text, and who set `label`, where one is named.

        Raises:
            NotFoundError: There is no issue of this number that the worker can see.
            ForgeUnavailableError: The forge did not answer.
            ForgeError: It refused.
        """


@dataclass(slots=True)
class Writers:
    """Who may push to a repository, each asked for once."""

    forge: Forge
    trusted_accounts: Iterable[str] = ()
    """Accounts that count whatever the forge says, such as those of Apps."""
    known: dict[str, bool] = field(default_factory=dict)
    refusal: str = ""
    """Why the forge has not told of an account; who is not told of does not count."""

    def may_write(self, account: str) -> bool:
        """Say whether what an account says counts.

        Raises:
            ForgeUnavailableError: The forge did not answer.
        """
        if account not in self.known:
            is_named = account.lower() in {each.lower() for each in self.trusted_accounts}
            self.known[account] = bool(account) and (is_named or self._ask(account))
        return self.known[account]

    def _ask(self, account: str) -> bool:
        try:
            return self.forge.may_write(account)
        except ForgeUnavailableError:
            raise
        except ForgeError as error:  # such as that the key itself may not push there
            self.refusal = self.refusal or str(error)
            return False


@dataclass(frozen=True, slots=True)
class RequestCheck:
    """Holds what was asked for against what an issue says now."""

    history: IssueHistory
    writers: Writers
    on_unknown_edits: UnknownEdits

    def label_refusal(self, label: str) -> str:
        """Return why a label does not count; empty where somebody who may push has set it."""
        set_by = self.history.set_by
        if self.history.set_at is not None and self.writers.may_write(set_by):
            return ""
        why = f"the forge does not tell who set the label {label}"
        if set_by:
            why = f"{one_line(set_by)}, who set the label {label}, may not push to the repository"
        if set_by and self.writers.refusal:
            who = one_line(set_by)
            why = f"nobody knows whether {who}, who set the label {label}, may push: {self.writers.refusal}"
        return cut(f"{why}. Somebody who may can set it again, or comment `/septet run`.", _WHY_LIMIT)

    def by_label(self, issue: Issue, delivered: IssueRequest | None) -> IssueRequest:
        """Return what the setter of a label asked for; one that counts.

        Args:
            issue: As it is now.
            delivered: What a webhook has told, and when.
        """
        set_at = self.history.set_at
        if set_at is None:
            message = "nobody has set the label"
            raise RuntimeError(message)
        sha256 = ""
        if delivered is not None and delivered.by.lower() == self.history.set_by.lower():
            came_at = parse_time(delivered.at)
            is_of_it = came_at is not None and abs(came_at - set_at) <= _DELIVERY_LAGS
            sha256 = delivered.text_sha256 if is_of_it else ""
        return self._request(issue, self.history.set_by, set_at, sha256)

    def by_comment(self, issue: Issue, commanded: IssueRequest) -> IssueRequest:
        """Return what somebody who may push asked for in a comment."""
        at = parse_time(commanded.at) or datetime.now(UTC)
        return self._request(issue, commanded.by, at, commanded.text_sha256)

    def changed_since(self, requested: IssueRequest) -> str:
        """Return why a text that is another than was asked for needs a person; empty where writers changed it."""
        since = parse_time(requested.at)
        if since is None or not self.history.tells_all_edits or not self._edits_since(since):
            return f"The issue was edited since {_request_by(requested.by)}, and the forge does not tell by whom."
        return self._foreign_edit(requested.by, since)

    def _request(self, issue: Issue, by: str, at: datetime, sha256: str) -> IssueRequest:
        """Return a request for the text that an issue has now, and what stands against it."""
        why = self._doubt(by, at, is_known=bool(sha256)) if sha256 != issue.text_sha256 else ""
        return IssueRequest(by=by[:200], at=timestamp(at), text_sha256=issue.text_sha256, waits_because=why)

    def _doubt(self, by: str, at: datetime, *, is_known: bool) -> str:
        """Say why the text may be another than was asked for, where nothing proves that it is the same."""
        if foreign := self._foreign_edit(by, at):
            return foreign
        if is_known and not (self.history.tells_all_edits and self._edits_since(at)):
            return f"The issue says something else than when {_request_by(by)}."
        if self.on_unknown_edits == "wait" and self.history.may_have_changed_since(at):
            return f"The issue may have been edited since {_request_by(by)}: this forge does not tell."
        return ""

    def _foreign_edit(self, by: str, since: datetime) -> str:
        """Say that somebody who may not push has edited the issue since then; empty where nobody has."""
        for edit in self._edits_since(since):
            if not self.writers.may_write(edit.author):
                who = one_line(edit.author) or "somebody"
                return cut(f"{who}, who may not push, edited the issue after {_request_by(by)}.", _WHY_LIMIT)
        return ""

    def _edits_since(self, moment: datetime) -> list[IssueEdit]:
        """Return the edits since then; of those in the same second nobody knows what was first."""
        return [each for each in self.history.edits if each.at >= moment.replace(microsecond=0)]


def read_request(  # noqa: PLR0913 -- what it is held against
    forge: TellingForge,
    number: int,
    label: str,
    *,
    delivered: IssueRequest | None = None,
    commanded: IssueRequest | None = None,
    trusted_accounts: Iterable[str] = (),
    on_unknown_edits: UnknownEdits = "wait",
) -> IssueRequest | str:
    """Return what somebody who may push asked for, or why nobody has.

    Args:
        forge: Where.
        number: Of the issue.
        label: By which it is asked for.
        delivered: What a webhook tells of the label; its time is when the webhook came.
        commanded: A comment of somebody who may push, which counts in place of the label.
        trusted_accounts: Accounts that count whatever the forge says.
        on_unknown_edits: What holds where the forge does not tell of edits.

    Raises:
        ForgeUnavailableError: The forge did not answer.
        ForgeError: It refused.
    """
    issues = forge.find_issues((number,))
    if not issues:
        return f"there is no issue {number}"
    history = forge.issue_history(number, label)  # read after the text that it is about
    check = RequestCheck(history, Writers(forge, trusted_accounts), on_unknown_edits)
    if commanded is not None:
        return check.by_comment(issues[0], commanded)
    return check.label_refusal(label) or check.by_label(issues[0], delivered)


def parse_time(text: str) -> datetime | None:
    """Return a time as a forge writes it; `None` where it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _request_by(by: str) -> str:
    return f"{one_line(by) or 'somebody'} asked for it"
