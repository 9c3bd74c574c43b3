"""Show a work order live until its end, as a picture or as lines, and request the decision on its plan."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.live import Live

from clients.cli.live.plan_question import PlanQuestion
from clients.cli.render.watch import WatchLines, WatchPicture
from clients.cli.terminal.console import console
from clients.cli.terminal.reply import StoppedWaitingError
from clients.operations.absence import PATIENCE
from clients.operations.operations import Operations
from septet.contracts.replies import WatchReply
from septet.errors import ServerNotReachedError

_PAINTS_PER_SECOND: Final = 4.0


@dataclass(slots=True)
class LiveView:
    """The live view of one work order until its end."""

    operations: Operations
    order_id: str
    asks: bool = False
    """Whether the view requests a decision on a plan that waits."""
    out: Console = field(default_factory=console)
    _looks: AsyncGenerator[WatchReply, None] = field(init=False)
    _next: "asyncio.Task[WatchReply] | None" = None
    """The pending next reply, kept while a person decides so that it is not lost."""

    def __post_init__(self) -> None:
        """Create the watch, without a read."""
        self._looks = self.operations.reading.watch(self.order_id, patience=PATIENCE).looks()

    def begin(self) -> None:
        """Start the first read in the background, while the caller shows something else."""
        self._upcoming()

    async def follow(self) -> WatchReply:
        """Show the work order until it is closed, and return it.

        Raises:
            NotFoundError: The work order does not exist.
            ServerNotReachedError: The server does not answer.
            StoppedWaitingError: Ctrl-C. The work order continues; the error names the command to watch it again.
        """
        try:
            return await (self._paint() if self.out.is_terminal else self._write())
        except asyncio.CancelledError as error:
            raise stopped_waiting(self.order_id) from error
        finally:
            if self._next is not None:
                self._next.cancel()
                await asyncio.wait({self._next})
            await self._looks.aclose()

    async def _paint(self) -> WatchReply:
        look = await self._look()
        while not look.task.is_closed:
            look = await self._paint_until_question(look)
            if not look.task.is_closed:
                look = await self._ask(look)
        return look

    async def _paint_until_question(self, look: WatchReply) -> WatchReply:
        """Paint the work order until the work order is closed or waits for a decision; keep the text above it."""
        picture = WatchPicture()
        with Live(picture, console=self.out, refresh_per_second=_PAINTS_PER_SECOND, transient=True) as live:
            try:
                while not look.task.is_closed and not (self.asks and look.task.waits_for_a_decision):
                    picture.take(look)
                    live.refresh()
                    look = await self._look()
            except ServerNotReachedError:
                live.transient = False  # the last picture stays above the error
                raise
        return look

    async def _ask(self, look: WatchReply) -> WatchReply:
        """Request a decision on a plan until a person decides, here or elsewhere; return the next reply."""
        question = PlanQuestion(self.operations, look, self.out)
        answer = asyncio.create_task(question.ask())
        plan = look.task.plan_sha256
        try:
            while look.task.waits_for_a_decision and look.task.plan_sha256 == plan:
                upcoming = self._upcoming()
                await asyncio.wait({answer, upcoming}, return_when=asyncio.FIRST_COMPLETED)
                if answer.done() and not await answer:
                    raise stopped_waiting(self.order_id, asks=True)
                if upcoming.done():
                    look = await self._look()
        except asyncio.CancelledError as error:
            raise stopped_waiting(self.order_id, asks=True) from error
        finally:
            if not answer.done():
                answer.cancel()
                await asyncio.wait({answer})
        return look

    async def _write(self) -> WatchReply:
        """Print a line for each event until the work order is closed, and return the last reply."""
        lines = WatchLines()
        look: WatchReply | None = None
        while look is None or not look.task.is_closed:
            look = await self._look()
            for line in lines.new_lines(look):
                self.out.print(line, soft_wrap=True, markup=False)
        return look

    def _upcoming(self) -> "asyncio.Task[WatchReply]":
        if self._next is None:
            self._next = asyncio.ensure_future(anext(self._looks))
        return self._next

    async def _look(self) -> WatchReply:
        upcoming = self._upcoming()
        try:
            return await asyncio.shield(upcoming)
        finally:
            if upcoming.done():
                self._next = None


def stopped_waiting(order_id: str, *, asks: bool = False) -> StoppedWaitingError:
    """Return the error for a person who stopped waiting; `asks` if the work order waits for an approval."""
    state = "is waiting for your approval" if asks else "is still running"
    approve = f"Approve it:      septet approve {order_id}\n" if asks else ""
    return StoppedWaitingError(
        f"Stopped waiting; {order_id} {state}.",
        remedy=f"{approve}Watch it again:  septet watch {order_id}\nCancel it:       septet cancel {order_id}",
    )
