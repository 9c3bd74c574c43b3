"""What the account of a work order's budget has counted, held against the streams of all its agent runs."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes import endings
from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.runs.folders import Run, Runs

_PATIENCE_SECONDS = 120.0
"""What a worker could not tell an account at once it tells at its next look, a minute later."""
_LOOK_SECONDS = 0.5
_NO_END = ExitRecord(cause="lost")


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
    stopped: tuple[str, ...] = ()
    """The steps of those that were asked to end because they had used what the budget let them use."""
    over: int = 0
    """By how much it was above its limit when it waited, at the most."""

    @property
    def is_even(self) -> bool:
        """Whether both are the same."""
        return self.counted == self.streamed

    @property
    def is_within(self) -> bool:
        """Whether it was above its limit by no more than one run: an agent goes on while its worker is dead."""
        return self.over <= self.longest_turn


async def settled_ledger(order: str, state: Path, count: Callable[[], Awaitable[int]]) -> Ledger:
    """Return a closed work order's ledger, once it is even; as it is after a while where it does not become so.

    Args:
        order: The work order.
        state: The state directory of its host.
        count: Returns what its account has counted up to now.
    """
    runs = await asyncio.to_thread(Runs(state / "runs").of, order)
    turns = await asyncio.to_thread(lambda: [_tokens_of(run) for run in runs])
    stopped = tuple(
        run.record.step for run in runs if run.record and (run.exit() or _NO_END).why == endings.BUDGET
    )
    deadline = time.monotonic() + _PATIENCE_SECONDS
    ledger = Ledger(order, await count(), sum(turns), max(turns, default=0), stopped)
    while not ledger.is_even and time.monotonic() < deadline:
        await asyncio.sleep(_LOOK_SECONDS)
        ledger = replace(ledger, counted=await count())
    return ledger


def _tokens_of(run: Run) -> int:
    """Return the tokens that an agent run has printed, read anew from its stream."""
    end = run.exit()
    if run.record is None or end is None or not run.has_started:
        return 0
    dialect = adapter_for(run.record.agent).dialect()
    dialect.feed(run.stdout.read_bytes())
    return dialect.outcome(end, "").usage.tokens
