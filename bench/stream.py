"""The stream reader of each agent: its megabytes a second on a long stream, and its memory."""

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure
from bench.machine import ROOT
from bench.pace import Pace
from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import ExitRecord

RECORDINGS = ROOT / "tests" / "data" / "recordings"
MB = 1_000_000
CHUNK_BYTES = 1024 * 1024
"""The bytes that the engine reads at a time."""
MEMORY_TARGET_MB = 64.0
TARGETS = {"claude": 300.0, "codex": 200.0, "copilot": 200.0, "gemini": 200.0, "opencode": 200.0}
"""The least megabytes a second, by agent."""
_PLAIN_BYTES = 20 * MB
_TURNS = {
    "claude": "edit_accept_edits",
    "codex": "edit_bypass",
    "copilot": "edit",
    "gemini": "edit",
    "opencode": "edit",
}
"""The repeated recording: a whole run that edits a file."""


def measure(pace: Pace) -> list[Figure]:
    """Measure each dialect, each time in a new process."""
    total = pace.times(1000 * MB, 100 * MB)
    figures: list[Figure] = []
    for agent, target in TARGETS.items():
        best = max(_in_new_process(agent, total) for _ in range(pace.times(3, 1)))
        grown = _in_new_process(agent, total, memory=True)
        note = f"{_TURNS[agent]}, {total // MB:,} MB, by CPU time"
        plain = _plain_rate(_recorded(agent))
        figures += [
            Figure(agent, best, "MB/s", target, "at least", plain, "json.loads on each line", note),
            Figure(f"{agent}, extra memory", grown, "MB", MEMORY_TARGET_MB, note="growth of the peak"),
        ]
    return figures


def grown(recorded: bytes, total: int, chunk: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield `recorded` repeatedly, cut into chunks, until at least `total` bytes."""
    block = recorded * (-(-chunk // len(recorded)) + 1)
    given = 0
    while given < total:
        start = given % len(recorded)
        yield block[start : start + chunk]
        given += chunk


def recording(agent: str) -> Path:
    """Return the recorded output of an agent's whole run that edits a file."""
    return RECORDINGS / agent / f"{_TURNS[agent]}.stdout"


def _recorded(agent: str) -> bytes:
    return recording(agent).read_bytes()


def _in_new_process(agent: str, total: int, *, memory: bool = False) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        rate, growth = pool.apply(read_grown, (agent, total))
    return growth if memory else rate


def read_grown(agent: str, total: int) -> tuple[float, float]:
    """Read a long stream to its end; return the MB/s and the growth of the peak memory in MB.

    Raises:
        RuntimeError: The reader found no session in the stream.
    """
    chunks = list(grown(_recorded(agent), 32 * CHUNK_BYTES))
    dialect = adapter_for(agent).dialect()
    dialect.feed(chunks[0])
    before = _peak_mb()
    begin = time.process_time()
    for number in range(total // CHUNK_BYTES):
        dialect.feed(chunks[number % len(chunks)])
    seconds = time.process_time() - begin
    outcome = dialect.outcome(ExitRecord(cause="exited", exit_code=0), "")
    if outcome.session_id is None:
        raise RuntimeError(f"The reader of {agent} saw no session in {_TURNS[agent]}.")
    return total / MB / seconds, _peak_mb() - before


def _plain_rate(recorded: bytes) -> float:
    """Return the MB/s of Python's own JSON on the same lines."""
    lines = recorded.splitlines()
    begin, read = time.process_time(), 0
    while read < _PLAIN_BYTES:
        for line in lines:
            json.loads(line)
        read += len(recorded)
    return read / MB / (time.process_time() - begin)


def _peak_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MB
