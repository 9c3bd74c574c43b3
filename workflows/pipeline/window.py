"""How many work orders a pipeline has open: a window slides over its issues, and no run becomes too long."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio import workflow

_ENOUGH_EVENTS: Final = 3_000
"""After so many, or so many bytes, a run starts nothing more: what is open by then still has to fit in."""
_ENOUGH_BYTES: Final = 3_000_000
_MOST_EVENTS: Final = 20_000
"""Of a run that goes on beside an issue that does not end; Temporal ends a workflow with more than 51,200."""
_MOST_BYTES: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """How wide the window is, and how far it slides in one run."""

    open_orders: int = 40
    """Work orders that wait for a lane or have one; others are beside them, planned or held back by a person."""
    issues_of_a_run: int = 80
    """Some fifty events each stay below a tenth of what a history may be."""
    patience: timedelta = timedelta(minutes=10)
    """So long lanes may be idle because the next run waits for an issue that does not end."""


class Window:
    """The window of one run of a pipeline."""

    def __init__(self, limits: WindowLimits, on_news: Callable[[], None]) -> None:
        """Begin at the first issue; `on_news` is called when a run has waited long enough for its last issues."""
        self._limits = limits
        self._on_news = on_news
        self._patience: asyncio.Task[None] | None = None
        self._goes_on = False
        """Whether this run goes on beside issues that do not end."""

    def room(self, open_orders: int, started_count: int) -> int:
        """Return how many work orders may be started now.

        Args:
            open_orders: Those that wait for a lane, or have one.
            started_count: All that this run has started.
        """
        room = self._limits.open_orders - open_orders
        if self._goes_on:
            return max(room, 0) if _is_shorter(_MOST_EVENTS, _MOST_BYTES) else 0
        room = min(room, self._limits.issues_of_a_run - started_count)
        return max(room, 0) if _is_shorter(_ENOUGH_EVENTS, _ENOUGH_BYTES) else 0

    def go_on(self) -> None:
        """Start more in this run than it would: what is left may take for ever."""
        self._goes_on = True

    def begin_patience(self) -> None:
        """Go on after a while, if lanes are idle until then."""
        if self._patience is None and not self._goes_on:
            self._patience = asyncio.create_task(self._lose_patience())

    def end_patience(self) -> None:
        """Note that lanes have something to do."""
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    async def _lose_patience(self) -> None:
        await workflow.sleep(self._limits.patience, summary="does the next run have to wait?")
        self.go_on()
        self._on_news()


def _is_shorter(events: int, size: int) -> bool:
    info = workflow.info()
    return info.get_current_history_length() < events and info.get_current_history_size() < size
