"""A worker follows an agent to its end and counts its usage; output without events can be the answer too."""

import asyncio
import math
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest
from fakes.agent_streams import BAD, CLIS, GOOD, KILLED
from fakes.run_records import RECORD

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import ExitRecord, Outcome
from septet.agents.runs.folders import Run
from septet.agents.runs.records import seconds_since_boot
from septet.agents.sandbox.connections import Attachment
from septet.agents.turns.follow import Pace, StreamReading, TurnProgress, follow
from septet.answers.steps import is_step_answer
from septet.contracts.names import Step

STREAM = Path(__file__).parents[2] / "data" / "recordings" / "opencode" / "edit.stdout"
LOOKS = 4


TASK = '{{"type":"system","subtype":"task_started","task_id":"t","task_type":"{}","is_backgrounded":true}}\n'
RESULT = '{"type":"result","is_error":false,"result":"/bug","session_id":"s"}\n'
LOOKING = Pace(poll_seconds=0.01)
AT_ONCE = replace(LOOKING, result_grace_seconds=0, command_grace_seconds=0, task_grace_seconds=math.inf)


def run_at(folder: Path, began: timedelta = timedelta(), **held: float) -> Run:
    since_boot = seconds_since_boot() - began.total_seconds()
    return Run(folder, replace(RECORD, agent="opencode", limits=held, began_at_seconds=since_boot))


async def why_asked_to_end(
    run: Run, cli: str = "opencode", pace: Pace = LOOKING, is_answer: Callable[[str], bool] = bool
) -> list[str]:
    """Follow a run whose supervisor ends its agent after a few polls; return the requests to end the agent."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=theirs)
    attachment, looks = await Attachment.over(ours), 0

    def count(_: TurnProgress) -> None:
        nonlocal looks
        looks += 1
        if looks == LOOKS:
            writer.write(b"ended %s\n" % msgspec.json.encode(ExitRecord(cause="exited", exit_code=0)))

    reading = StreamReading(run, adapter_for(cli).dialect(), epoch=1, is_answer=is_answer)
    await follow(reading, attachment, turn_limit=100, pace=pace, on_progress=count)
    attachment.close()
    asked = (await reader.read()).decode().splitlines()
    writer.close()
    return sorted(set(asked))


@pytest.mark.parametrize(("held", "asked"), [(0.05, ["end budget"]), (1.0, [])])
async def test_an_agent_that_tells_its_dollars_as_it_works_is_asked_to_end_by_them(
    tmp_path: Path, held: float, asked: list[str]
) -> None:
    """The costs of an agent's steps count as they come: the engine ends an agent that exceeds its budget."""
    run = run_at(tmp_path, held_usd=held)
    run.stdout.write_bytes(STREAM.read_bytes().replace(b'"cost":0', b'"cost":0.02'))
    assert await why_asked_to_end(run) == asked


@pytest.mark.parametrize(("minutes", "asked"), [(10, ["end budget"]), (0, [])])
async def test_the_minutes_of_an_agent_count_from_its_start_whoever_follows_it(
    tmp_path: Path, minutes: int, asked: list[str]
) -> None:
    """A worker that adopts an agent gives the agent no more time."""
    run = run_at(tmp_path, timedelta(minutes=minutes), held_seconds=60.0)
    assert await why_asked_to_end(run) == asked


@pytest.mark.parametrize(
    ("task", "answers", "asked"),
    [
        ("", True, ["end after_result"]),
        ("local_bash", True, ["end after_result"]),
        ("local_bash", False, []),
        ("local_agent", True, []),
    ],
)
async def test_an_agent_that_goes_on_after_its_result_is_asked_to_end_by_what_it_waits_for(
    tmp_path: Path, task: str, asked: list[str], *, answers: bool
) -> None:
    """After a valid result the engine waits for no shell command, which may be a server, but for other work."""
    run = run_at(tmp_path)
    run.stdout.write_text((TASK.format(task) if task else "") + RESULT)
    assert (
        await why_asked_to_end(run, "claude", AT_ONCE, is_answer=lambda text: answers and text == "/bug") == asked
    )


JSON = '{"issue_class": "/bug"}'
USAGE = "\n\n\nTotal usage est:       1 Premium request\nTotal duration (API):  4s\nUsage by model:\n    gpt-5  9 input\n"
CLASSIFY = partial(is_step_answer, name=Step.CLASSIFY_ISSUE, in_pipeline=False)


def read_text(folder: Path, cli: str, text: str, end: ExitRecord = GOOD, stderr: str = "") -> Outcome:
    run = Run(folder, replace(RECORD, agent=cli))
    run.stdout.write_text(text)
    run.stderr.write_text(stderr)
    return StreamReading(run, adapter_for(cli).dialect(), epoch=1, is_answer=CLASSIFY).outcome(end)


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize(
    "text",
    [JSON, f"Sure, the class is:\n\n```json\n{JSON}\n```\n", '{\n  "issue_class":\n  "/bug"\n}\n', "/bug\n"],
)
def test_an_answer_that_is_printed_without_events_counts(tmp_path: Path, cli: str, text: str) -> None:
    """Text that meets the contract of the step is the answer; its session is the session of the start."""
    outcome = read_text(tmp_path, cli, text)
    assert (outcome.ended, outcome.text, outcome.session_id) == ("ok", text.strip(), "s")
    assert "without events" in outcome.warnings[-1]


@pytest.mark.parametrize("text", [JSON, "/bug", f"{JSON}\n" * 2])
def test_what_copilot_says_of_its_usage_is_no_part_of_an_answer(tmp_path: Path, text: str) -> None:
    """The usage figures that copilot prints after its answer are left out."""
    assert read_text(tmp_path, "copilot", text + USAGE).text == text.strip()


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize(
    ("text", "end"),
    [
        ('{"issue_class": "/colour"}', GOOD),
        (JSON, BAD),
        (JSON, KILLED),
        (JSON, ExitRecord(cause="idle_limit")),
    ],
)
def test_other_text_is_no_answer(tmp_path: Path, cli: str, text: str, end: ExitRecord) -> None:
    """Text that does not meet the contract, and text of a program that failed, is no answer."""
    outcome = read_text(tmp_path, cli, text, end)
    assert (outcome.ended == "ok", outcome.text) == (False, None)
    assert outcome.session_id is None


@pytest.mark.parametrize("cli", CLIS)
def test_an_error_counts_before_a_plain_form_and_not_before_json(tmp_path: Path, cli: str) -> None:
    """An error on stderr wins over a plain class, but not over JSON that meets the contract."""
    limit = "You've hit your usage limit. Try again in 2 hours."
    assert read_text(tmp_path, cli, "/bug", stderr=limit).kind == "rate_limit"
    assert read_text(tmp_path, cli, JSON, stderr=limit).ended == "ok"


def test_an_object_in_a_stream_of_events_is_no_answer(tmp_path: Path) -> None:
    """In a stream of events, only an event can carry the answer."""
    events = '{"type":"thread.started","thread_id":"t"}\n'
    assert read_text(tmp_path, "codex", f"{events}{JSON}\n").text is None


def test_no_more_is_read_than_may_be_printed(tmp_path: Path) -> None:
    """A worker reads a stream up to its limit only, even if the file is larger, for example by a hole."""
    run = run_at(tmp_path)
    run.stdout.write_text(RESULT, encoding="utf-8")
    os.truncate(run.stdout, 19 << 30)
    reading = StreamReading(run, adapter_for("claude").dialect(), epoch=1, most_bytes=4 << 20)
    reading.catch_up()
    assert (reading.position, reading.dialect.progress.results) == (5 << 20, 1)
