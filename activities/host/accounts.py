"""The accounts of budgets, as activities see them; who reaches them is given to the host."""

from typing import Protocol

from septet.contracts.budget import AccountState, Grant, ReserveCall, SettleCall
from septet.contracts.quota import QuotaPause


class Accounts(Protocol):
    """The accounts of an installation's budgets."""

    async def reserve(self, opening: AccountState, call: ReserveCall, *, opens: bool) -> Grant | None:
        """Ask an account for room; `None` where there is no such budget.

        Args:
            opening: The account, and what it begins with.
            call: Which turn asks.
            opens: Whether it is opened where it is not there.

        Raises:
            SeptetError: Nobody can be asked now.
        """

    async def is_open(self, scope: str) -> bool:
        """Say whether there is such a budget.

        Raises:
            SeptetError: Nobody can be asked now.
        """

    async def find_pause(self, login: str) -> QuotaPause | None:
        """Return the pause of a login whose usage limit is reached; `None` where it is not.

        Raises:
            SeptetError: Nobody can be asked now.
        """

    async def note_pause(self, login: str, pause: QuotaPause) -> None:
        """Let no host start an agent with a login until its usage limit begins anew.

        Raises:
            SeptetError: Nobody can be told now.
        """

    async def settle(self, scope: str, call: SettleCall) -> None:
        """Tell an account what a turn used.

        Raises:
            SeptetError: Nobody can be told now.
        """
