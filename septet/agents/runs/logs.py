"""The logs of a run: its network connections, the times at which its stream was written, and a log's last part."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from septet.agents.proxy.model_port import OPENS
from septet.agents.proxy.network_log import MOST_BYTES, NETWORK_LOG
from septet.agents.runs.folders import Run
from septet.system.masking import mask_bytes
from septet.telemetry.metrics import PROXY_REFUSALS
from septet.telemetry.recorder import RECORDER

if TYPE_CHECKING:
    from septet.contracts.steps import StepCall

_NAME: Final = re.compile(r"[A-Za-z0-9._:-]{1,253}")
_REQUEST: Final = re.compile(r"[A-Z]+ [!-~]{1,300}")
_MOST_NAMED: Final = 10
_LONGEST_KEY_BYTES: Final = 16 * 1024
"""The size of the longest key, in any encoding."""


class NetworkLine(msgspec.Struct):
    """A line of a network log: one requested connection, or a count of requested connections."""

    id: str = ""
    """The id of the request; a later line with the same id replaces this line. Empty if no later line replaces
    this line."""
    time: str = ""
    """The time of the line, as ISO 8601 in UTC."""
    host: str = ""
    port: int = 0
    """The port; 0 if the request names no host and port."""
    allowed: bool = True
    why: str = ""
    sent_bytes: int = 0
    received_bytes: int = 0
    seconds: float = 0.0
    request: str = ""
    """Method and path of a request to a model, if the model's key stays outside the sandbox."""
    input_tokens: int = 0
    """The input tokens that the model reported, including tokens from a cache."""
    output_tokens: int = 0
    count: int = 1
    of_check: bool = False


def network_lines(run: Run) -> Iterator[NetworkLine]:
    """Yield the lines of the network logs of a run and then of its checks; skip unreadable lines."""
    yield from _lines_of(run.folder / NETWORK_LOG)
    for line in lines_of_commands(run.checks):
        line.of_check = True
        yield line


def lines_of_commands(folder: Path) -> Iterator[NetworkLine]:
    """Yield the lines of the network log of every check or set-up command that has a record in `folder`."""
    for record in _records_in(folder):
        yield from _lines_of(record / NETWORK_LOG)


def lines_of_last_command(folder: Path) -> Iterator[NetworkLine]:
    """Yield the lines of the network log of the last check or set-up command that has a record in `folder`."""
    for record in _records_in(folder)[-1:]:
        yield from _lines_of(record / NETWORK_LOG)


def refused_hosts(run: Run) -> list[str]:
    """Return the addresses that the sandbox refused to a run and its checks, as `name:port`, each once."""
    return refused_in(network_lines(run))


def refused_in(lines: Iterable[NetworkLine]) -> list[str]:
    """Return the addresses that these lines report as refused, as `name:port`, each once."""
    names = (f"{line.host}:{line.port}" for line in lines if not line.allowed and line.port and not line.request)
    return [name for name in dict.fromkeys(names) if _NAME.fullmatch(name)]


def refused_requests(run: Run) -> list[str]:
    """Return a run's refused model requests that a setting could allow, as method and path, each once."""
    found = dict.fromkeys(line.request for line in network_lines(run) if OPENS in line.why)
    return [request for request in found if _REQUEST.fullmatch(request)]


def tokens_seen(run: Run) -> tuple[int, int]:
    """Return the numbers of a run's input and output tokens, as Septet's proxy read them in models' answers."""
    lines = _lines_of(run.folder / NETWORK_LOG)
    return sum(line.input_tokens for line in lines), sum(line.output_tokens for line in lines)


def refusal_note(setup: Path, runs: Sequence[Run]) -> str:
    """Return a note for the next agent about addresses that were refused to the last run, but to no earlier run.

    Empty if there are no such addresses. `setup` has the records of the workspace's set-up, which counts as the
    first run.
    """
    *before, last = (refused_in(lines_of_commands(setup)), *map(refused_hosts, runs[-20:]))
    told_before = {name for names in before for name in names}
    new = [name for name in last if name not in told_before]
    if not new:
        return ""
    names = ", ".join(new[:_MOST_NAMED])
    more = f" and {len(new) - _MOST_NAMED} others" if len(new) > _MOST_NAMED else ""
    return (
        f"Your sandbox does not let these hosts through: {names}{more}. No other way leads there: do without "
        "them, and say so in your answer if the task cannot be done without."
    )


def _records_in(folder: Path) -> list[Path]:
    """Return the numbered folders of checks or set-up commands, in the order in which they ran."""
    return sorted((path for path in folder.glob("*") if path.name.isdecimal()), key=lambda path: int(path.name))


def _lines_of(path: Path) -> list[NetworkLine]:
    found: dict[str, NetworkLine] = {}
    try:
        with path.open("rb") as file:
            content = file.read(4 * MOST_BYTES)
    except OSError:
        return []
    for number, text in enumerate(content.splitlines()):
        try:
            line = msgspec.json.decode(text, type=NetworkLine)
        except msgspec.MsgspecError:
            continue
        found[line.id or str(number)] = line
    return list(found.values())


_COUNTED: Final = "counted_refusals.json"
"""A run's file with the addresses that were counted, as a list of `name:port`."""


@contextmanager
def recording_refusals(call: "StepCall", run: Run) -> Iterator[None]:
    """Count a run's refused addresses in the metrics when the block ends; the run's checks run in the block."""
    try:
        yield
    finally:
        record_refusals(call, run)


def record_refusals(call: "StepCall", run: Run) -> None:
    """Count, in the metrics, the addresses that the sandbox refused to a run and its checks, each address once.

    Do nothing if metrics are off. If the disk refuses the record of counted addresses, a later call counts them
    again.
    """
    if not RECORDER.is_on:
        return
    counted = _read_counted(run)
    new = [host for host in refused_hosts(run) if host not in counted]
    if new:
        agent = run.record.agent if run.record is not None else call.workspace.agent
        RECORDER.record(PROXY_REFUSALS, len(new), step=call.name, agent=agent)
        with suppress(OSError):
            run.put(_COUNTED, json.dumps([*counted, *new]).encode())


def _read_counted(run: Run) -> list[str]:
    with suppress(OSError, ValueError):
        hosts: list[str] = json.loads((run.folder / _COUNTED).read_bytes())
        return hosts
    return []


_TIMES: Final = "stdout.times"


class Written(NamedTuple):
    """A position in a stream, and a time at which all bytes before the position had been written."""

    position: int
    seconds: float
    """The time in seconds since 1970, read from the time of the file's last change."""


def note_written(run: Run, position: int, seconds: float) -> None:
    """Record that at the time `seconds` a stream was written up to `position`; ignore errors of the disk."""
    with suppress(OSError):
        descriptor = os.open(run.folder / _TIMES, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, f"{position} {seconds:.3f}\n".encode())
        finally:
            os.close(descriptor)


def times_written(run: Run) -> list[Written]:
    """Return the recorded times, sorted by position, each lowered to the next time if that is earlier."""
    try:
        lines = (run.folder / _TIMES).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    notes = sorted(note for line in lines if (note := _note(line)) is not None)
    earliest: list[Written] = []
    for note in reversed(notes):
        seconds = min(note.seconds, earliest[-1].seconds) if earliest else note.seconds
        earliest.append(Written(note.position, seconds))
    return earliest[::-1]


def written_last(run: Run) -> str:
    """Return the time of the stream's last change, as ISO 8601 in UTC; empty if there is no stream."""
    try:
        return _utc(run.stdout.stat().st_mtime)
    except OSError:
        return ""


def pieces(chunk: bytes, begins_at: int, times: Sequence[Written], otherwise: str) -> Iterator[tuple[bytes, str]]:
    """Split a chunk by the times of its writing; yield each part with its time, as ISO 8601 in UTC.

    `begins_at` is the chunk's position in the stream. Bytes without a recorded time get the time `otherwise`.
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


def end_of_file(path: Path, limit_bytes: int) -> str:
    """Return the end of a file as text, with this process's keys masked, even a key that the limit cuts.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        begin = max(size - limit_bytes - 2 * _LONGEST_KEY_BYTES, 0)
        file.seek(begin)
        content = mask_bytes(file.read(size - begin))
    if begin:  # the part may begin with half a key; masks have shortened other keys
        content = content[min(_LONGEST_KEY_BYTES, len(content) // 2) :]
    return content[-limit_bytes:].decode("utf-8", errors="replace")
