"""Follow a running agent: read its output stream, report its progress, and request its end at a limit."""

import asyncio
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from septet.agents.clis.adapter import Dialect
from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes import endings
from septet.agents.outcomes.outcome import ExitRecord, Outcome, StreamProgress
from septet.agents.runs.folders import Run
from septet.agents.runs.logs import end_of_file, note_written
from septet.agents.runs.records import seconds_since_boot
from septet.agents.sandbox.connections import Attachment
from septet.system.text import timestamp

HELD_USD: Final = "held_usd"
HELD_TOKENS: Final = "held_tokens"
HELD_SECONDS: Final = "held_seconds"
"""The names, in a run's limits, of the amounts that the run's budgets allow until the next budget check."""
_CHUNK_BYTES: Final = 1024 * 1024
_WITHOUT_EVENTS: Final = "it printed its answer without events: what it used is not known"

_SHARE: Final = 0.2
"""The part of a poll interval in which polls are collected; one thread serves the collected polls."""


class GrowingStream(Protocol):
    """An agent's output, which is read in parts while the agent writes."""

    def read_some(self) -> bool:
        """Read a part of the new bytes; return whether no new bytes are left."""

    def catch_up(self) -> None:
        """Read all new bytes."""


class Polls:
    """Reads the streams of all agents that one event loop follows; one thread serves many polls."""

    def __init__(self) -> None:
        self._waiting: list[tuple[GrowingStream, asyncio.Future[bool]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    async def catch_up(self, stream: GrowingStream, poll_seconds: float) -> None:
        """Wait until all new bytes of a stream are read. A long stream does not delay the polls of other streams.

        Raises:
            OSError: The stream cannot be read.
        """
        loop = asyncio.get_running_loop()
        is_all: asyncio.Future[bool] = loop.create_future()
        if self._loop is not loop:
            self._loop, self._waiting = loop, []
        self._waiting.append((stream, is_all))
        if len(self._waiting) == 1:
            loop.call_later(_SHARE * poll_seconds, self._read)
        if not await is_all:
            await asyncio.to_thread(stream.catch_up)

    def _read(self) -> None:
        waiting, self._waiting = self._waiting, []
        reading = asyncio.get_running_loop().run_in_executor(None, lambda: [_read(each) for each, _ in waiting])
        reading.add_done_callback(lambda done: _resolve([is_all for _, is_all in waiting], done))


def _read(stream: GrowingStream) -> bool | Exception:
    """Return the result of `read_some`, or the error that `read_some` raised."""
    try:
        return stream.read_some()
    except Exception as error:  # noqa: BLE001 -- it is raised where the stream is followed
        return error


def _resolve(waiting: list[asyncio.Future[bool]], reading: asyncio.Future[list[bool | Exception]]) -> None:
    """Give each waiting poll its result or its error; skip cancelled polls."""
    if reading.cancelled():
        for each in waiting:
            each.cancel()
        return
    for each, read in zip(waiting, reading.result(), strict=True):
        if each.done():
            continue
        if isinstance(read, Exception):
            each.set_exception(read)
        else:
            each.set_result(read)


@dataclass(frozen=True, slots=True)
class TurnProgress:
    """What an agent has done so far in a turn."""

    run: Run
    session_id: str | None
    last_event: str
    tokens: int
    turns: int
    epoch: int


@dataclass(slots=True)
class StreamReading:
    """Reads the output stream of a run; the first `position` bytes have been read."""

    run: Run
    dialect: Dialect
    epoch: int
    is_answer: Callable[[str], bool] = bool
    position: int = 0
    most_bytes: int = 0
    """The most bytes that an agent may print; reading stops soon after. 0 for no limit."""

    def catch_up(self) -> None:
        """Read all new bytes."""
        while not self.read_some():
            pass

    def read_some(self) -> bool:
        """Read the next chunk of new bytes; return whether no new bytes are left.

        The result is also true if the file does not exist, because the supervisor has not created it yet.
        """
        try:
            file = os.open(self.run.stdout, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            # Reads end one chunk after the limit, as a hole may follow.
            left = self.most_bytes + _CHUNK_BYTES - self.position if self.most_bytes else _CHUNK_BYTES
            chunk = os.pread(file, max(0, min(left, _CHUNK_BYTES)), self.position)
            written_at = os.fstat(file).st_mtime
        finally:
            os.close(file)
        self.position += len(chunk)
        if chunk:
            note_written(self.run, self.position, written_at)
            self.dialect.feed(chunk)
        return len(chunk) < _CHUNK_BYTES

    def outcome(self, end: ExitRecord) -> Outcome:
        """Read the rest of the stream and return the run's outcome."""
        self.catch_up()
        outcome = self.dialect.outcome(self._dated(end), _end_of(self.run.stderr, 8 * 1024))
        spoke = bool(self.dialect.progress.last_event or outcome.session_id or outcome.turns or outcome.tool_calls)
        if not (spoke or outcome.has_answer) and (end.cause, end.exit_code) == ("exited", 0):
            outcome = self._with_text(outcome)
        left = f"processes that it left in the background were ended: {end.swept}"
        return replace(
            outcome,
            session_id=self._session(outcome.session_id, spoke=spoke or outcome.has_answer),
            warnings=(*outcome.warnings, left) if end.swept and end.cause == "exited" else outcome.warnings,
        )

    def _with_text(self, outcome: Outcome) -> Outcome:
        """For a run without events: return the outcome, with the printed text as answer if `is_answer` accepts it.

        If the CLI printed an API error, only JSON can be an answer. The default `is_answer` accepts nothing.
        """
        printed = _end_of(self.run.stdout, 4 * 1024 * 1024)
        record = self.run.record
        closing = adapter_for(record.agent).capabilities.closing if record is not None else ""
        text = printed.rpartition(f"\n{closing}")[0] if closing and f"\n{closing}" in printed else printed
        names_error = outcome.ended == "api_error" and "{" not in text
        if self.is_answer is bool or names_error or not self.is_answer(text):
            return outcome
        return replace(
            outcome, ended="ok", kind="", text=text.strip(), message="", remedy="", retryable=False,
            retry_after_seconds=None, retry_is_named=False, warnings=(*outcome.warnings, _WITHOUT_EVENTS),
        )  # fmt: skip

    def progress(self) -> TurnProgress:
        """Return what the agent has done so far in the turn."""
        progress = self.dialect.progress
        session_id = self._session(progress.session_id, spoke=bool(progress.last_event))
        return TurnProgress(self.run, session_id, progress.last_event, progress.tokens, progress.turns, self.epoch)

    def _session(self, session_id: str | None, *, spoke: bool) -> str | None:
        """Return the session's id; if the CLI has not named the session, use the run's record.

        A resumed session exists in any case. A new session exists only if the CLI has printed something (`spoke`).
        """
        record = self.run.record
        if session_id is not None or record is None:
            return session_id
        return record.session_id if spoke else record.resumed_from

    def _dated(self, end: ExitRecord) -> ExitRecord:
        """Return the exit record with an end time; if the record has no time, use the time of the last output."""
        if end.ended_at:
            return end
        with suppress(FileNotFoundError):
            written_at = datetime.fromtimestamp(self.run.stdout.stat().st_mtime, UTC)
            return replace(end, ended_at=timestamp(written_at))
        return end


def _end_of(path: Path, limit_bytes: int) -> str:
    return end_of_file(path, limit_bytes) if path.exists() else ""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often an agent's stream is polled, and how long an agent may be silent after its result."""

    poll_seconds: float = 0.5
    """The seconds between two polls of the stream; the end of an agent is noticed at once."""
    result_grace_seconds: float = 15.0
    """The seconds that a CLI gets to end after its result."""
    command_grace_seconds: float = 60.0
    """The seconds that a silent CLI may wait for commands after an answer; some commands never end."""
    task_grace_seconds: float = 600.0
    """The seconds that a silent CLI may wait for tasks after a result; claude itself waits as long."""
    polls: Polls = field(default_factory=Polls)


async def follow(
    reading: StreamReading,
    attachment: Attachment,
    *,
    turn_limit: int,
    pace: Pace,
    on_progress: Callable[[TurnProgress], None],
) -> ExitRecord | None:
    """Follow an agent to its end and return the record of the end; `None` if the supervisor was killed.

    A cancel leaves the agent running. This function requests the agent's end at the turn limit, at a used-up
    budget, and after a result. The supervisor ends the agent at a time limit.
    """
    on_progress(reading.progress())
    record = reading.run.record
    start = record.began_at_seconds if record is not None else 0.0
    age = max(seconds_since_boot() - start, 0.0) if start else 0.0
    over_at, seen, began_at = math.inf, None, time.monotonic() - age
    while not await attachment.wait_for_end(pace.poll_seconds):
        await pace.polls.catch_up(reading, pace.poll_seconds)
        on_progress(reading.progress())
        progress = reading.dialect.progress
        if progress.turns > turn_limit:
            attachment.ask_to_end(endings.TURN_LIMIT)
        if _has_used_hold(reading.run, progress, time.monotonic() - began_at):
            attachment.ask_to_end(endings.BUDGET)
        news = (progress.results, progress.turns, progress.waits_for and reading.position)
        if news != seen:
            seen = news
            over_at = time.monotonic() + _grace_seconds(progress, pace, reading.is_answer)
        elif time.monotonic() >= over_at:
            attachment.ask_to_end(endings.AFTER_RESULT)
    return attachment.record


def _grace_seconds(progress: StreamProgress, pace: Pace, is_answer: Callable[[str], bool]) -> float:
    """Return the seconds for which a CLI may report nothing new after its result; infinite before a result."""
    if not progress.results:
        return math.inf
    if not progress.waits_for:
        return pace.result_grace_seconds
    is_over = progress.waits_for == "commands" and is_answer(progress.result_text)
    return pace.command_grace_seconds if is_over else pace.task_grace_seconds


def _has_used_hold(run: Run, progress: StreamProgress, seconds: float) -> bool:
    """Return whether an agent has used up what its budgets allow; `seconds` is the time used so far."""
    limits = run.record.limits if run.record is not None else {}
    used = {HELD_USD: progress.cost_usd, HELD_TOKENS: progress.tokens, HELD_SECONDS: seconds}
    return any(amount >= limits.get(name, math.inf) for name, amount in used.items())
