"""The accounts of budgets and the pauses of logins, in this process."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from septet.budgets.account import AccountState, AccountView, Grant, ReserveCall, SettleCall
from septet.budgets.account_book import AccountBook
from septet.contracts.pauses import QuotaPause
from septet.errors import ServerNotReachedError
from workers.watching.accounts import AccountNotReachedError

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
ORDER = "order/wo-1"


@dataclass
class Books:
    """The accounts of a fleet, in this process; a report that arrives while they are away is lost."""

    books: dict[str, AccountBook] = field(default_factory=dict)
    pauses: dict[str, QuotaPause] = field(default_factory=dict)
    away: bool = False
    behind_seconds: float = 0.0
    """The seconds by which the server's clock, which ends pauses, is behind this host's clock."""
    lost_grants: int = 0
    """The number of next grants whose answers are lost, as when a worker is killed before it has noted a grant."""

    async def reserve(self, opening: AccountState, call: ReserveCall, *, opens: bool) -> Grant | None:
        if opens:
            self.books.setdefault(opening.scope, AccountBook(opening))
        book = self.books.get(opening.scope)
        grant = book.reserve(call, NOON) if book is not None else None
        if grant is not None and self.lost_grants:
            self.lost_grants -= 1
            message = "The answer was lost."
            raise AccountNotReachedError(message)
        return grant

    async def is_open(self, scope: str) -> bool:
        return scope in self.books

    async def settle(self, scope: str, call: SettleCall) -> None:
        if self.away:
            raise ServerNotReachedError
        self.books[scope].settle(call, NOON)

    async def find_pause(self, login: str) -> QuotaPause | None:
        pause = self.pauses.get(login)
        return pause if pause is not None and pause.until > time.time() - self.behind_seconds else None

    async def note_pause(self, login: str, pause: QuotaPause) -> None:
        self.pauses[login] = pause

    def view(self, scope: str = ORDER) -> AccountView:
        return self.books[scope].view
