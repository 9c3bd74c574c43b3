"""An agent is followed: it is asked to end where it has used what its budgets let it use for now."""

import asyncio
import math
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from septet.agents.clis.outcome import ExitRecord
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.folders import Run, RunKey, RunRecord
from septet.agents.turns.attachment import Attachment
from septet.agents.turns.follow import Pace, StreamReading, TurnProgress, follow
from septet.system.timestamps import seconds_since_boot, timestamp

STREAM = Path(__file__).parents[2] / "data" / "recordings" / "opencode" / "edit.stdout"
LOOKS = 4


TASK = '{{"type":"system","subtype":"task_started","task_id":"t","task_type":"{}","is_backgrounded":true}}\n'
RESULT = '{"type":"result","is_error":false,"result":"/bug","session_id":"s"}\n'
LOOKING = Pace(look_seconds=0.01)
AT_ONCE = replace(LOOKING, result_grace_seconds=0, command_grace_seconds=0, task_grace_seconds=math.inf)


def run_at(folder: Path, began: timedelta = timedelta(), **held: float) -> Run:
    """Return a run that began so long ago, with what its budgets let it use."""
    record = RunRecord(
        key=RunKey("wo-1", "run", "1"),
        serial=1,
        step="implement_plan",
        agent="opencode",
        because="first",
        mark="mark",
        argv=(),
        env_names=(),
        worktree=str(folder),
        limits=held,
        started_at=timestamp(datetime.now(UTC)),
        began_at_seconds=seconds_since_boot() - began.total_seconds(),
    )
    return Run(folder, record)


async def why_asked_to_end(
    run: Run, cli: str = "opencode", pace: Pace = LOOKING, is_answer: Callable[[str], bool] = bool
) -> list[str]:
    """Follow a run whose supervisor ends its agent after a few looks; return for which reasons it was asked to."""
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
    """It has no option to end at a cost by itself; the figures of its steps count as they come."""
    run = run_at(tmp_path, held_usd=held)
    run.stdout.write_bytes(STREAM.read_bytes().replace(b'"cost":0', b'"cost":0.02'))
    assert await why_asked_to_end(run) == asked


@pytest.mark.parametrize(("minutes", "asked"), [(10, ["end budget"]), (0, [])])
async def test_the_minutes_of_an_agent_count_from_its_start_whoever_follows_it(
    tmp_path: Path, minutes: int, asked: list[str]
) -> None:
    """A worker that starts anew and adopts it gives it no more time than the one before."""
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
    """Commands alone are not waited for where the result is the answer: one may be a server. Other work is."""
    run = run_at(tmp_path)
    run.stdout.write_text((TASK.format(task) if task else "") + RESULT)
    assert (
        await why_asked_to_end(run, "claude", AT_ONCE, is_answer=lambda text: answers and text == "/bug") == asked
    )
