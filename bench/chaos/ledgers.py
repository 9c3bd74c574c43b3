"""What the account of a work order's budget has counted, held against the streams of all its agent runs."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from septet.agents.clis.registry import adapter_for
from septet.agents.runs.folders import Run, Runs

BUDGET = "1000Mtok"
"""Of each work order: it is never used up, and its account counts every turn."""
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

    @property
    def is_even(self) -> bool:
        """Whether both are the same."""
        return self.counted == self.streamed


async def settled_ledger(order: str, state: Path, count: Callable[[], Awaitable[int]]) -> Ledger:
    """Return a closed work order's ledger, once it is even; as it is after a while where it does not become so.

    Args:
        order: The work order.
        state: The state directory of its host.
        count: Returns what its account has counted up to now.
    """
    streamed = await asyncio.to_thread(tokens_streamed, state, order)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    ledger = Ledger(order, await count(), streamed)
    while not ledger.is_even and time.monotonic() < deadline:
        await asyncio.sleep(_LOOK_SECONDS)
        ledger = Ledger(order, await count(), streamed)
    return ledger


def tokens_streamed(state: Path, order: str) -> int:
    """Return the tokens that all agent runs of a work order have printed, read anew from their streams."""
    return sum(map(_tokens_of, Runs(state / "runs").of(order)))


def _tokens_of(run: Run) -> int:
    end = run.exit()
    if run.record is None or end is None or not run.has_started:
        return 0
    dialect = adapter_for(run.record.agent).dialect()
    dialect.feed(run.stdout.read_bytes())
    return dialect.outcome(end, "").usage.tokens
