"""Report turns to the accounts of their budgets if their worker died and no attempt followed on this host.

The costs of these turns are noted too.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog

from activities.host.accounts import Accounts
from activities.host.host import Host
from activities.turns.turn_costs import conclude_left_turn
from septet.agents.runs.records import RunKey
from septet.budgets.held_turns import HeldTurn
from septet.contracts.budget import SettleCall
from workers.beside import beside, repeat

LOOK_SECONDS: Final = 60.0
_LEFT_SECONDS: Final = 300.0
"""The seconds for which a left turn waits: a new attempt may still report the turn."""

_log = structlog.get_logger()


@asynccontextmanager
async def telling_left_turns(host: Host) -> AsyncIterator[None]:
    """Report left turns to their accounts during the block."""
    if host.accounts is None:
        yield
        return
    teller = LeftTurns(host, host.accounts)
    async with beside(repeat(teller.look, lambda: LOOK_SECONDS, "budgets_not_told")):
        yield


@dataclass(frozen=True, slots=True)
class LeftTurns:
    """Reports turns to accounts if their agents are dead and no attempt has reported them for a while."""

    host: Host
    accounts: Accounts
    left_seconds: float = _LEFT_SECONDS
    _seen: dict[tuple[str, str], float] = field(default_factory=dict)
    """The time when each turn was first found without an agent, by workspace and turn; in monotonic seconds."""

    async def look(self) -> int:
        """Report the turns that were left, and return their number.

        Raises:
            SeptetError: An account was not reached; the remaining turns are reported at the next call.
        """
        count, now = 0, time.monotonic()
        for place_id, turn in await asyncio.to_thread(self._find):
            since = self._seen.setdefault((place_id, turn.key), now)
            if turn.is_over or now - since >= self.left_seconds:
                count += await self._tell(place_id, turn)
                del self._seen[place_id, turn.key]
        return count

    def _find(self) -> list[tuple[str, HeldTurn]]:
        notes, runs = self.host.held_turns, self.host.runs
        turns = [(place, turn) for place in notes.places() if not runs.is_held(place) for turn in notes.of(place)]
        for key in [*self._seen]:
            if key not in {(place, turn.key) for place, turn in turns}:
                del self._seen[key]
        return turns

    async def _tell(self, place_id: str, turn: HeldTurn) -> bool:
        """Report a turn to its accounts under the writer's lock, so that no attempt starts meanwhile."""
        lock = await asyncio.to_thread(self.host.runs.lock_writer, place_id)
        if lock is None:
            return False
        try:
            key = RunKey(turn.workflow_id, turn.run_id, turn.activity_id)
            use = await asyncio.to_thread(conclude_left_turn, self.host, place_id, key)
            for scope in turn.scopes:
                await self.accounts.settle(scope, SettleCall(key=turn.key, used=use))
            await asyncio.to_thread(self.host.held_turns.forget, place_id, turn.key)
        finally:
            os.close(lock)
        _log.info("budget_told_late", place=place_id, usd=use.usd, tokens=use.tokens)
        return True
