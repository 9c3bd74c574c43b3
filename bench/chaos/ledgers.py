"""What the account of a work order's budget has counted, held against the streams of all its agent runs."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from septet.agents.clis.registry import adapter_for
from septet.agents.runs.folders import Run, Runs

BUDGET = "1000Mtok"
"""Of each work order, where a trial names no other: it is never used up, and its account counts every turn."""
_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Ledger:
    """The tokens of one work order."""

    order: str
    counted: int
    """By its account."""
    streamed: int
    """By what its agents have printed."""
    longest_turn: int = 0
    """By what the one of them has printed that used most."""
    over: int = 0
    """By how much it was above its limit when it waited, at the most."""

    @property
    def is_even(self) -> bool:
        """Whether both are the same."""
        return self.counted == self.streamed

    @property
    def is_within(self) -> bool:
        """Whether it was above its limit by no more than one turn: an agent that runs is not ended in its turn."""
        return self.over <= self.longest_turn


async def settled_ledger(order: str, state: Path, count: Callable[[], Awaitable[int]]) -> Ledger:
    """Return a closed work order's ledger, once it is even; as it is after a while where it does not become so.

    Args:
        order: The work order.
        state: The state directory of its host.
        count: Returns what its account has counted up to now.
    """
    turns = await asyncio.to_thread(tokens_streamed, state, order)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    ledger = Ledger(order, await count(), sum(turns), max(turns, default=0))
    while not ledger.is_even and time.monotonic() < deadline:
        await asyncio.sleep(_LOOK_SECONDS)
        ledger = replace(ledger, counted=await count())
    return ledger


def tokens_streamed(state: Path, order: str) -> list[int]:
    """Return the tokens that each agent run of a work order has printed, read anew from its stream."""
    return [_tokens_of(run) for run in Runs(state / "runs").of(order)]


def _tokens_of(run: Run) -> int:
    end = run.exit()
    if run.record is None or end is None or not run.has_started:
        return 0
    dialect = adapter_for(run.record.agent).dialect()
    dialect.feed(run.stdout.read_bytes())
    return dialect.outcome(end, "").usage.tokens
