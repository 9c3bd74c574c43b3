"""Record the times at which the bytes of a run's stream were written, because few CLIs report them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, NamedTuple

from septet.agents.runs.folders import Run

_FILE: Final = "stdout.times"
_OWNER_ONLY: Final = 0o600


class Written(NamedTuple):
    """A position of a stream, and a time by which the bytes before this position were written."""

    position: int
    seconds: float
    """The time in seconds since 1970, read from the time of the file's last change."""


def note_written(run: Run, position: int, seconds: float) -> None:
    """Record the time by which the stream was written up to a position; disk errors are ignored."""
    with suppress(OSError):
        descriptor = os.open(
            run.folder / _FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY
        )
        try:
            os.write(descriptor, f"{position} {seconds:.3f}\n".encode())
        finally:
            os.close(descriptor)


def times_written(run: Run) -> list[Written]:
    """Return the recorded times by position; a second reading of the stream changes no time."""
    try:
        lines = (run.folder / _FILE).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    notes = sorted(note for line in lines if (note := _note(line)) is not None)
    earliest: list[Written] = []
    for note in reversed(notes):
        seconds = min(note.seconds, earliest[-1].seconds) if earliest else note.seconds
        earliest.append(Written(note.position, seconds))
    return earliest[::-1]


def written_last(run: Run) -> str:
    """Return the time of the stream's last change, as ISO 8601 in UTC; empty without a stream."""
    try:
        return _utc(run.stdout.stat().st_mtime)
    except OSError:
        return ""


def pieces(chunk: bytes, begins_at: int, times: Sequence[Written], otherwise: str) -> Iterator[tuple[bytes, str]]:
    """Yield the parts of a chunk, each with the time of its writing, as ISO 8601 in UTC.

    The chunk begins at the position `begins_at` of its stream; bytes without a recorded time have the time
    `otherwise`.
    """
    inside = [note for note in times if note.position > begins_at]
    ends = [min(note.position - begins_at, len(chunk)) for note in inside]
    for (start, end), note in zip(pairwise((0, *ends)), inside, strict=True):
        if start < end:
            yield chunk[start:end], _utc(note.seconds)
    rest = chunk[ends[-1] if ends else 0 :]
    if rest:
        yield rest, otherwise


def _note(line: str) -> Written | None:
    position, _, seconds = line.partition(" ")
    try:
        return Written(int(position), float(seconds))
    except ValueError:
        return None


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
