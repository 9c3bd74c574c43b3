"""The cache of logs reads each byte of a run once."""

import json
import os
from dataclasses import replace

import pytest
from fakes.run_records import RECORD

from clients.disk.agent_logs import AgentLogs
from clients.disk.log_cache import LogCache
from septet.agents.runs.folders import Run, Runs
from septet.state import StateDir


def said(text: str) -> bytes:
    """Return a line of claude's stream."""
    content = [{"type": "text", "text": text}]
    return json.dumps({"type": "assistant", "message": {"content": content}}).encode() + b"\n"


@pytest.fixture
def run(state: StateDir) -> Run:
    """Return a run with one message so far."""
    run, lock = Runs(state.runs).create("wo-1", 5, replace(RECORD), b"Work.\n")
    os.close(lock)
    run.stdout.write_bytes(said("one"))
    return run


def told(books: LogCache, state: StateDir) -> list[str]:
    return [entry.text for entry in books.entries(AgentLogs(state, "wo-1"))[1]]


def test_each_byte_is_read_once(state: StateDir, run: Run) -> None:
    """A later read begins where the last read ended."""
    books = LogCache()
    assert told(books, state) == ["one"]
    run.stdout.write_bytes(said("???") + said("two"))
    assert told(books, state) == ["one", "two"]
    assert [entry.id for entry in books.entries(AgentLogs(state, "wo-1"))[1]] == [
        f"{run.folder.name}/{n}" for n in (1, 2)
    ]
    assert told(LogCache(), state) == ["???", "two"]
