"""The tokens that a work order's account has counted, compared with the streams of all its agent runs."""

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
"""The seconds in which a worker's next pass, a minute later, reports what an account could not receive at once."""
_LOOK_SECONDS = 0.5
_NO_END = ExitRecord(cause="lost")


@dataclass(frozen=True, slots=True)
class Ledger:
    """The tokens of one work order."""

    order: str
    counted: int
    """The tokens counted by its account."""
    streamed: int
    """The tokens that its agents printed."""
    longest_turn: int = 0
    """The tokens of the agent that printed most."""
    stopped: tuple[str, ...] = ()
    """The steps whose agents were stopped because they had used up the budget."""
    over: int = 0
    """The most tokens above its limit while it waited."""

    @property
    def is_even(self) -> bool:
        """Return whether both sums are equal."""
        return self.counted == self.streamed

    @property
    def is_within(self) -> bool:
        """Return whether it exceeded its limit by at most one run: an agent works on while its worker is dead."""
        return self.over <= self.longest_turn


async def settled_ledger(order: str, state: Path, count: Callable[[], Awaitable[int]]) -> Ledger:
    """Return a closed work order's ledger once it is even, or after a time as it is then.

    Args:
        order: The work order.
        state: The state directory of its host.
        count: Returns the tokens that its account has counted up to now.
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
    """Return the tokens in an agent run's stream, read anew."""
    end = run.exit()
    if run.record is None or end is None or not run.has_started:
        return 0
    dialect = adapter_for(run.record.agent).dialect()
    dialect.feed(run.stdout.read_bytes())
    return dialect.outcome(end, "").usage.tokens
