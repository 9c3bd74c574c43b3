"""Show a work order live until it is closed, and prompt the person for a decision on its plan."""

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from clients.cli.render.watch import WatchLines, WatchPicture
from clients.cli.render.work_order import show_estimate
from clients.cli.terminal.console import console
from clients.cli.terminal.reply import StoppedWaitingError
from clients.operations.absence import PATIENCE
from clients.operations.operations import Operations
from septet.contracts.replies import WatchReply
from septet.errors import RefusedTransitionError, ServerNotReachedError
from septet.settings import load_settings
from septet.system import processes
from septet.system.masking import printable

_CHOICES: Final = (
    "[a]pprove  [r]eject with feedback  [e]dit (your changes go to the planner as feedback)  [q]uit waiting"
)
_SCISSORS: Final = "# ------------------------ >8 ------------------------"
_ABOVE: Final = f"""\


{_SCISSORS}
# Write your feedback above the line, or change the plan below. Both go to the planner, which writes a new plan.
# Change nothing to decide later.
"""


@dataclass(slots=True)
class PlanQuestion:
    """A prompt that lets a person decide on one plan."""

    operations: Operations
    look: WatchReply
    out: Console

    async def ask(self) -> bool:
        """Show the plan, and prompt until the person decides or quits; return whether the person decided.

        Raises:
            ServerNotReachedError: No worker accepts the decision.
        """
        self._show_plan()
        estimate = await self.operations.starting.estimate_rest(self.look.task)
        show_estimate(self.out, estimate.text if estimate is not None and estimate.is_known else "")
        while True:
            word = await self._read(_CHOICES)
            if word is None or word.lower() in {"q", "quit"}:
                return False
            try:
                if await self._decide(word.lower()):
                    return True
            except RefusedTransitionError as error:  # another decision was faster
                self.out.print(Text(printable(str(error)), style="yellow"), soft_wrap=True)
                return True

    async def _decide(self, word: str) -> bool:
        """Carry out the person's choice; return true if the choice approves or rejects the plan."""
        task, decisions = self.look.task, self.operations.decisions
        if word in {"a", "approve", "y", "yes"}:
            await decisions.approve(task.id, task.plan_sha256, load_settings().user)
            self.out.print(Text("Plan approved.", style="green"))
            return True
        if word in {"r", "reject"}:
            feedback = await self._read("What should the planner do differently?")
        elif word in {"e", "edit"}:
            feedback = await self._edit()
        else:
            self.out.print(Text(f"{word or 'Enter alone'} is not one of the choices.", style="yellow"))
            return False
        if not feedback:
            self.out.print(Text("No feedback, so nothing was decided.", style="dim"))
            return False
        await decisions.reject(task.id, feedback[:8000], task.plan_sha256, load_settings().user)
        self.out.print(Text("Plan rejected; the planner starts again with your feedback.", style="yellow"))
        return True

    def _show_plan(self) -> None:
        task, plan = self.look.task, self.look.plan
        self.out.print(Text.assemble((f"Plan for {task.id}: ", "bold"), printable(task.plan_path or "")))
        if plan is None:
            note = f"This host does not have the plan; read it where the work order runs: septet plan {task.id}"
            self.out.print(Text(note, style="dim"), soft_wrap=True)
            return
        self.out.print(Text(printable(plan.text)))
        if not plan.whole:
            note = f"… only its beginning is shown: septet plan {task.id} prints all of it."
            self.out.print(Text(note, style="dim"))
        for rescue in task.left_beside_plan:
            self.out.print(Text(printable(rescue.telling), style="yellow"), soft_wrap=True)

    async def _read(self, prompt: str) -> str | None:
        """Return the next typed line; `None` at the end of the input."""
        self.out.print(Text(prompt, style="bold"))
        self.out.print(Text("> ", style="bold"), end="")
        return await read_line(sys.stdin.fileno())

    async def _edit(self) -> str:
        """Let the person edit the plan, and return the changes as feedback; empty if nothing was changed."""
        settings = load_settings()
        editor = settings.environ.get("VISUAL") or settings.environ.get("EDITOR") or "vi"
        plan = self.look.plan.text if self.look.plan is not None else ""
        with TemporaryDirectory(prefix="septet-plan-") as folder:
            file = Path(folder) / "plan-review.md"
            file.write_text(_ABOVE + plan, encoding="utf-8")
            argv = [*shlex.split(editor), str(file)]
            try:
                await asyncio.to_thread(processes.run_on_terminal, argv, env=settings.environ)
            except OSError as error:
                why = f"The editor {editor!r} could not be started: {error.strerror}. Name another one in EDITOR."
                self.out.print(Text(why, style="red"))
                return ""
            return feedback_of(file.read_text(encoding="utf-8", errors="replace"), plan)


def feedback_of(text: str, plan: str) -> str:
    """Return the feedback in an edited text: the words above the plan, and a diff of the person's changes."""
    words, _, below = text.partition(_SCISSORS)
    edited = [line for line in below.split("\n")[1:] if not line.startswith("# ")] if _SCISSORS in text else []
    own = [line for line in plan.split("\n") if not line.startswith("# ")]
    changes = list(unified_diff(own, edited, "plan", "wanted", lineterm="", n=1)) if edited else []
    wanted = "Change the plan like this:\n" + "\n".join(changes) if changes else ""
    return "\n\n".join(part for part in (words.strip(), wanted) if part)


async def read_line(descriptor: int) -> str | None:
    """Return the next line that a person types, without blocking other tasks; `None` at the end of the input."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    line = os.read(descriptor, 64 * 1024)
    return line.decode("utf-8", errors="replace").strip() if line else None


@dataclass(slots=True)
class LiveView:
    """Shows one work order live until it is closed."""

    operations: Operations
    order_id: str
    asks: bool = False
    """Whether to prompt the person for a decision when a plan waits."""
    out: Console = field(default_factory=console)
    _looks: AsyncGenerator[WatchReply, None] = field(init=False)
    _next: "asyncio.Task[WatchReply] | None" = None
    """The task that reads the next reply. It keeps running while a person decides, so that no reply is lost."""

    def __post_init__(self) -> None:
        """Create the iterator of replies; nothing is read yet."""
        self._looks = self.operations.reading.watch(self.order_id, patience=PATIENCE).looks()

    async def follow(self) -> WatchReply:
        """Show the work order until it is closed, and return the last reply.

        Raises:
            NotFoundError: The work order does not exist.
            ServerNotReachedError: The server does not answer.
            StoppedWaitingError: The person pressed Ctrl-C; the work order continues.
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
        """Repaint the picture until the work order closes or needs a decision; return the last reply."""
        picture = WatchPicture()
        with Live(picture, console=self.out, refresh_per_second=4.0, transient=True) as live:
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
        """Prompt for a decision on a plan until somebody decides, here or elsewhere; return the next reply."""
        question = PlanQuestion(self.operations, look, self.out)
        answer = asyncio.create_task(question.ask())
        plan = look.task.plan_sha256
        try:
            while look.task.waits_for_a_decision and look.task.plan_sha256 == plan:
                upcoming = self.upcoming()
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

    def upcoming(self) -> "asyncio.Task[WatchReply]":
        """Return the background task that reads the next reply; start the task unless it already runs."""
        if self._next is None:
            self._next = asyncio.ensure_future(anext(self._looks))
        return self._next

    async def _look(self) -> WatchReply:
        upcoming = self.upcoming()
        try:
            return await asyncio.shield(upcoming)
        finally:
            if upcoming.done():
                self._next = None


def stopped_waiting(order_id: str, *, asks: bool = False) -> StoppedWaitingError:
    """Return the error for a person who stopped waiting; `asks` is true if a plan waits for approval."""
    state = "is waiting for your approval" if asks else "is still running"
    approve = f"Approve it:      septet approve {order_id}\n" if asks else ""
    return StoppedWaitingError(
        f"Stopped waiting; {order_id} {state}.",
        remedy=f"{approve}Watch it again:  septet watch {order_id}\nCancel it:       septet cancel {order_id}",
    )
