"""The interface through which activities reach the accounts of budgets."""

from typing import Protocol

from septet.contracts.budget import AccountState, Grant, QuotaPause, ReserveCall, SettleCall


class Accounts(Protocol):
    """The accounts of an installation's budgets."""

    async def reserve(self, opening: AccountState, call: ReserveCall, *, opens: bool) -> Grant | None:
        """Reserve room in an account; return `None` if the budget does not exist.

        Args:
            opening: The account and its first state.
            call: The turn that needs room.
            opens: Whether to open the account if it does not exist.

        Raises:
            SeptetError: The account cannot be reached now.
        """

    async def is_open(self, scope: str) -> bool:
        """Return whether a budget exists.

        Raises:
            SeptetError: The account cannot be reached now.
        """

    async def find_pause(self, login: str) -> QuotaPause | None:
        """Return the pause of a login that has reached its usage limit; `None` for any other login.

        Raises:
            SeptetError: The pause cannot be read now.
        """

    async def note_pause(self, login: str, pause: QuotaPause) -> None:
        """Record that no host may start an agent with a login until the login's usage limit resets.

        Raises:
            SeptetError: The pause cannot be recorded now.
        """

    async def settle(self, scope: str, call: SettleCall) -> None:
        """Report a turn's use to an account.

        Raises:
            SeptetError: The account cannot be reached now.
        """
