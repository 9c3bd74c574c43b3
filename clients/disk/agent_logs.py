"""Read the log entries of a work order's agents from this host's files, during their runs and afterwards."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from clients.disk.runs import started_runs
from septet.agents.clis.registry import ADAPTERS
from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.outcomes.transcript import Transcript, TranscriptEntry
from septet.agents.runs.folders import Run
from septet.agents.runs.logs import Written, end_of_file, pieces, times_written, written_last
from septet.contracts.host_files import LogEntry
from septet.errors import NotFoundError
from septet.state import StateDir
from septet.system.masking import mask, mask_bytes, scrub

_TEXT_SHOWN: Final = 2000


@dataclass(slots=True)
class AgentLogs:
    """Reads the output of a work order's agent runs on this host, the oldest run first."""

    state: StateDir
    order_id: str
    _views: dict[str, "_View"] = field(default_factory=dict)

    def new_entries(self) -> Iterator[LogEntry]:
        """Yield the log entries since the last call.

        Raises:
            InvalidInputError: The work order's id is invalid.
        """
        for view in self._look():
            yield from view.new_entries()

    def entries(self) -> list[LogEntry]:
        """Return all log entries so far; a later call reads only newer entries from the disk.

        Raises:
            InvalidInputError: The work order's id is invalid.
        """
        return [entry for view in self._look() for entry in view.entries()]

    def new_bytes(self) -> Iterator[bytes]:
        """Yield the agents' raw lines since the last call, with masked keys.

        Raises:
            InvalidInputError: The work order's id is invalid.
        """
        for view in self._look():
            yield from map(mask_bytes, view.new_lines())

    def must_exist(self) -> None:
        """Raise an error if the last read found no runs of the work order.

        Raises:
            NotFoundError: This host has no runs of the work order.
        """
        if not self._views:
            remedy = (
                f"If it has begun a step (septet show {self.order_id}), ask where its worker runs, with the "
                "worker's SEPTET_STATE_DIR."
            )
            raise NotFoundError(f"This host has no runs of {self.order_id}.", remedy=remedy)

    def _look(self) -> list["_View"]:
        """Return a view of each run that is on this host now; runs seen before keep their views."""
        runs = started_runs(self.state, self.order_id)
        self._views = {run.name: self._views.get(run.name) or _View(run) for run in runs}
        return list(self._views.values())


@dataclass(slots=True)
class _View:
    """Reads the output of one run, and remembers the position up to which the output was read."""

    run: Run
    _position: int = 0
    _over: bool = False
    _rest: bytes = b""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _entries: list[LogEntry] = field(default_factory=list)
    _transcript: Transcript | None = field(init=False)

    def __post_init__(self) -> None:
        adapter = ADAPTERS.get(self.run.record.agent) if self.run.record is not None else None
        self._transcript = adapter.transcript() if adapter is not None else None

    def new_bytes(self) -> Iterator[bytes]:
        """Yield the new bytes of the run's output since the last call."""
        try:
            with self.run.stdout.open("rb", buffering=0) as stream:
                stream.seek(self._position)
                while chunk := stream.read(1024 * 1024):
                    self._position += len(chunk)
                    yield chunk
        except FileNotFoundError:
            return

    def new_lines(self) -> Iterator[bytes]:
        """Yield the run's whole lines since the last call; after the run's end, yield an unfinished line too."""
        is_over = self.run.exit() is not None
        for chunk in self.new_bytes():
            lines, newline, self._rest = (self._rest + chunk).rpartition(b"\n")
            yield lines + newline
        if is_over and self._rest:
            rest, self._rest = self._rest, b""
            yield rest

    def new_entries(self) -> Iterator[LogEntry]:
        """Yield the run's log entries since the last call; after the run's end, yield the last entries once."""
        transcript = self._transcript
        if self._over or transcript is None:
            return
        end = self.run.exit()
        times: list[Written] = []
        last = written_last(self.run)
        for chunk in self.new_bytes():
            times = times or times_written(self.run)
            for part, time in pieces(chunk, self._position - len(chunk), times, last):
                last = time
                yield from (self._log_entry(entry, time) for entry in transcript.feed(part))
        if end is not None:
            self._over = True
            yield from (self._log_entry(entry, last) for entry in transcript.finish())
            yield from (self._log_entry(entry, end.ended_at or last) for entry in self._trouble(end))

    def entries(self) -> list[LogEntry]:
        """Return all log entries of the run so far."""
        self._entries.extend(self.new_entries())
        return self._entries

    def _log_entry(self, entry: TranscriptEntry, time: str) -> LogEntry:
        run, record = self.run.folder.name, self.run.record
        return LogEntry(
            id=f"{run}/{next(self._numbers)}",
            run=run,
            step=record.step if record is not None else "",
            agent=record.agent if record is not None else "",
            kind=entry.kind,
            text=scrub(mask(entry.text)[: 2 * _TEXT_SHOWN])[:_TEXT_SHOWN],
            tool=entry.tool,
            time=time,
        )

    def _trouble(self, end: ExitRecord) -> Iterator[TranscriptEntry]:
        """Yield an entry with the cause of an abnormal end and the last lines of the process's stderr."""
        if end.cause == "exited" and end.exit_code == 0:
            return
        code = f", exit code {end.exit_code}" if end.exit_code is not None else ""
        number = f", signal {end.signal}" if end.signal is not None else ""
        stderr = ""
        with suppress(FileNotFoundError):
            stderr = end_of_file(self.run.stderr, 600)
        words = f"The agent's process ended: {end.why or end.cause}{code}{number}. {stderr}"
        yield TranscriptEntry("error", words.strip())
