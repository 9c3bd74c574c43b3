"""Check, by an issue's labels and edits, that the issue still has the text for which work was requested."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, Protocol, runtime_checkable

from septet.contracts.order import IssueRequest
from septet.errors import ForgeError, ForgeUnavailableError
from septet.forges.forge import Forge
from septet.forges.values import Issue
from septet.system.text import cut, one_line, timestamp

UnknownEdits = Literal["wait", "take"]
_DELIVERY_LAGS: Final = timedelta(minutes=5)
"""If a webhook arrives within this time of a label's event, the webhook's text counts as the text at the event."""
_WHY_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class IssueEdit:
    """A change of an issue's title or body."""

    author: str
    """The account that made the change; empty if the forge does not report it."""
    at: datetime


@dataclass(frozen=True, slots=True)
class IssueHistory:
    """Who set an issue's label, and who edited its text, as far as the forge reports that."""

    set_by: str = ""
    """The account that last set the label; empty if the forge reports none."""
    set_at: datetime | None = None
    edits: tuple[IssueEdit, ...] = ()
    tells_all_edits: bool = True
    updated_at: datetime | None = None
    """When the issue last changed in any way; `None` if the forge reports all edits."""


@runtime_checkable
class TellingForge(Forge, Protocol):
    """A forge that reports who edited and labelled an issue."""

    def issue_history(self, number: int, label: str = "") -> IssueHistory:
        """Return the edits of an issue's text, and who set `label`, if a label is given."""


@dataclass(slots=True)
class Writers:
    """Checks which accounts may push to a repository, with one request per account."""

    forge: Forge
    trusted_accounts: Iterable[str] = ()
    """Accounts that count even without the right to push, such as those of Apps."""
    known: dict[str, bool] = field(default_factory=dict)
    refusal: str = ""
    """Why the forge refused to report an account's permission; the account then does not count."""

    def may_write(self, account: str) -> bool:
        """Return whether an account is trusted or may push.

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
        except ForgeError as error:  # such as a key that may not push to the repository itself
            self.refusal = self.refusal or str(error)
            return False


@dataclass(frozen=True, slots=True)
class RequestCheck:
    """Compares a request for work with the present text of its issue."""

    history: IssueHistory
    writers: Writers
    on_unknown_edits: UnknownEdits

    def label_refusal(self, label: str) -> str:
        """Return why a label is no request; empty if an account that may push has set it."""
        set_by = self.history.set_by
        if self.history.set_at is not None and self.writers.may_write(set_by):
            return ""
        who, why = one_line(set_by), f"the forge does not tell who set the label {label}"
        if set_by and self.writers.refusal:
            why = f"nobody knows whether {who}, who set the label {label}, may push: {self.writers.refusal}"
        elif set_by:
            why = f"{who}, who set the label {label}, may not push to the repository"
        return cut(f"{why}. Somebody who may can set it again, or comment `/septet run`.", _WHY_LIMIT)

    def by_label(self, issue: Issue, delivered: IssueRequest | None) -> IssueRequest:
        """Return the request that a label makes; call this only if `label_refusal` returned an empty text.

        `delivered` is a request by label as a webhook reported it.
        """
        set_at = self.history.set_at
        if set_at is None:
            raise RuntimeError("nobody has set the label")
        sha256 = ""
        if delivered is not None and delivered.by.lower() == self.history.set_by.lower():
            came_at = parse_time(delivered.at)
            is_of_it = came_at is not None and abs(came_at - set_at) <= _DELIVERY_LAGS
            sha256 = delivered.text_sha256 if is_of_it else ""
        return self.request_for(issue, self.history.set_by, set_at, sha256)

    def changed_since(self, requested: IssueRequest) -> str:
        """Return why a person must read a changed text; empty if only accounts that may push changed it."""
        since = parse_time(requested.at)
        if since is None or not self.history.tells_all_edits or not self._edits_since(since):
            return f"The issue was edited since {_request_by(requested.by)}, and the forge does not tell by whom."
        return self._foreign_edit(requested.by, since)

    def request_for(self, issue: Issue, by: str, at: datetime, sha256: str) -> IssueRequest:
        """Return the request for work on an issue's present text, with the reason if work must wait."""
        why = self._doubt(by, at, is_known=bool(sha256)) if sha256 != issue.text_sha256 else ""
        return IssueRequest(by=by[:200], at=timestamp(at), text_sha256=issue.text_sha256, waits_because=why)

    def _doubt(self, by: str, at: datetime, *, is_known: bool) -> str:
        """Return why work must wait; empty if work may start. If `is_known`, the text is known to have changed."""
        if foreign := self._foreign_edit(by, at):
            return foreign
        if is_known and not (self.history.tells_all_edits and self._edits_since(at)):
            return f"The issue says something else than when {_request_by(by)}."
        seen_at, tells_all = self.history.updated_at, self.history.tells_all_edits
        if self.on_unknown_edits == "wait" and not tells_all and (seen_at is None or seen_at > at):
            return f"The issue may have been edited since {_request_by(by)}: this forge does not tell."
        return ""

    def _foreign_edit(self, by: str, since: datetime) -> str:
        """Return a note about the first edit since `since` by an account that may not push; empty if none."""
        for edit in self._edits_since(since):
            if not self.writers.may_write(edit.author):
                who = one_line(edit.author) or "somebody"
                return cut(f"{who}, who may not push, edited the issue after {_request_by(by)}.", _WHY_LIMIT)
        return ""

    def _edits_since(self, moment: datetime) -> list[IssueEdit]:
        """Return the edits since a moment, including those in the same second, because their order is unknown."""
        return [each for each in self.history.edits if each.at >= moment.replace(microsecond=0)]


@dataclass(frozen=True, slots=True)
class RequestReader:
    """Reads and checks requests for work on a forge's issues."""

    forge: TellingForge
    trusted_accounts: Iterable[str] = ()
    """Accounts that count even if they may not push."""
    on_unknown_edits: UnknownEdits = "wait"
    """Whether to wait or to take the issue if the forge does not report all edits."""

    def read(
        self,
        number: int,
        label: str,
        *,
        delivered: IssueRequest | None = None,
        commanded: IssueRequest | None = None,
    ) -> IssueRequest | str:
        """Return the request for work by an account that may push, or the reason why no request counts.

        `commanded`, a request in a comment of an account that may push, counts in place of a request by label.
        `delivered` is a request by label as a webhook reported it.

        Raises:
            ForgeUnavailableError: The forge did not answer.
            ForgeError: The forge refused.
        """
        issues = self.forge.find_issues((number,))
        if not issues:
            return f"there is no issue {number}"
        # Read after the text: an edit in between is then in the history.
        history = self.forge.issue_history(number, label)
        writers = Writers(self.forge, self.trusted_accounts)
        check = RequestCheck(history, writers, self.on_unknown_edits)
        if commanded is not None:
            at = parse_time(commanded.at) or datetime.now(UTC)
            return check.request_for(issues[0], commanded.by, at, commanded.text_sha256)
        return check.label_refusal(label) or check.by_label(issues[0], delivered)


def parse_time(text: str) -> datetime | None:
    """Return the time in a forge's ISO text, in UTC if it names no zone; `None` if the text is no time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _request_by(by: str) -> str:
    return f"{one_line(by) or 'somebody'} asked for it"
