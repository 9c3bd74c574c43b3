"""An agent's output is masked before it is cut, because half a key cannot be found."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.agent_streams import BAD, CLIS
from fakes.run_records import RECORD

from clients.disk.agent_logs import AgentLogs
from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes import endings
from septet.agents.outcomes.line_stream import Facts
from septet.agents.outcomes.outcome import Ending, Outcome, bound_answer
from septet.agents.outcomes.stream import call_of
from septet.agents.runs.folders import Run, Runs
from septet.agents.runs.logs import end_of_file
from septet.agents.turns.follow import StreamReading
from septet.state import StateDir
from septet.system.masking import MASK, hide, reveal

KEY = "a-key-" + "0123456789" * 5


@pytest.fixture(autouse=True)
def _hidden() -> Iterator[None]:
    hide([KEY])
    yield
    reveal([KEY])


def ended_run(state: Path, agent: str, stdout: str, stderr: str) -> Run:
    run, lock = Runs(state / "runs").create("wo-1", 5, replace(RECORD, agent=agent), b"Work.")
    os.close(lock)
    run.stdout.write_text(stdout, encoding="utf-8")
    run.stderr.write_text(stderr, encoding="utf-8")
    (run.folder / "exit.json").write_text('{"cause": "exited", "exit_code": 1}', encoding="utf-8")
    return run


def around(limit: int, *, at_the_end: bool = True) -> Iterator[str]:
    """Yield texts that a cut at `limit` characters divides at each position of the key."""
    for into in range(1, len(KEY)):
        rest = "." * (limit - into)
        yield f"{'x' * 50}{KEY}{rest}" if at_the_end else f"{rest}{KEY}{'x' * 50}"


@pytest.mark.parametrize("agent", [*CLIS, "command"])
@pytest.mark.parametrize("shown", [600, 8192])
def test_of_stderr_no_half_key_is_told(agent: str, shown: int, tmp_path: Path) -> None:
    """Neither the step's error nor the work order's log shows half a key, for every CLI."""
    for number, text in enumerate(around(shown)):
        if number % 9 == 0:
            run = ended_run(tmp_path / str(number), agent, "", text)
            outcome = StreamReading(run, adapter_for(agent).dialect(), 1).outcome(BAD)
            entries = AgentLogs(StateDir(tmp_path / str(number)), "wo-1").entries()
            told = " ".join((outcome.message, *outcome.warnings, *(each.text for each in entries)))
            assert "456789" not in told
            assert "...." in told


def test_of_a_long_stderr_the_log_reads_the_end_alone(tmp_path: Path) -> None:
    """Only the end of a huge file is read, which may be mostly a hole."""
    run = ended_run(tmp_path, "claude", "", "")
    with run.stderr.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(b"the end")
    (entry,) = AgentLogs(StateDir(tmp_path), "wo-1").entries()
    assert entry.text.endswith("the end")


@pytest.mark.parametrize("before", [0, 1, 600, 40_000])
def test_the_end_of_a_file_begins_with_no_half_key(before: int, tmp_path: Path) -> None:
    """No half key remains, even if many masked keys make the end shorter than requested."""
    for into in range(0, len(KEY), 7):
        (tmp_path / "log").write_text("." * before + KEY * 400 + "." * into + "end", encoding="utf-8")
        end = end_of_file(tmp_path / "log", 600)
        assert end.endswith("end")
        assert len(end) <= 600
        assert "456789" not in end


def test_no_half_key_is_in_a_message_a_warning_or_an_answer() -> None:
    """Messages, warnings, tool calls and answers are masked before they are cut."""
    outcome = Outcome(ended="crashed")
    for text in around(2000, at_the_end=False):
        assert "a-key" not in endings.with_ending(outcome, Ending("crashed", "kind", text), BAD).message
    for text in around(300, at_the_end=False):
        facts = Facts()
        facts.warn(text)
        assert "a-key" not in facts.warnings[0]
    for text in around(160, at_the_end=False):
        assert "a-key" not in call_of("Bash", {"command": text})
    for text in around(1024):
        bounded, notes = bound_answer(replace(outcome, text=text), 1)
        assert notes
        assert "456789" not in (bounded.text or "")
    assert MASK in call_of("Bash", {"command": KEY})
