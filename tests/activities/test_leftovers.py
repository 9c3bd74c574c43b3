"""Processes of killed supervisors and absent workers are stopped, and their work kept, before others write."""

import asyncio
import os
import signal
from dataclasses import replace
from functools import partial

import pytest
from fakes.agent_lab import carriers, mark_of, supervisor_of
from fakes.step_lab import StepLab, halted
from fakes.taken_values import taken_values
from fakes.waiting import wait_until

from septet.agents.proxy.network_log import NETWORK_LOG
from septet.agents.runs.folders import Run
from septet.contracts.names import Step, Verdict
from septet.telemetry.metrics import PROXY_REFUSALS
from workers.recovery.strays import keep_what_was_left_alone
from workers.registry import parts_of

pytestmark = pytest.mark.law

_WRITES_ON = """
def write_on():
    while True:
        with open('src/leftover.txt', 'a') as file:
            file.write('x')
        time.sleep(0.002)

if not resumed:
    init()
    detached(write_on)
    turn('m1')
    time.sleep(300)
before = os.path.getsize('src/leftover.txt')
time.sleep(0.3)
alone = os.path.getsize('src/leftover.txt') == before
write('src/app.py', 'fixed')
answer({'success': alone, 'summary': 'Alone.' if alone else 'Somebody else writes here.',
        'key_changes_made': [], 'key_learnings': []})
"""
"""An agent whose tool leaves its process group and session, and writes as long as it lives."""


async def _left(lab: StepLab) -> Run:
    """Return the run of an agent that works without a worker, with a tool that keeps writing."""
    lab.agent(_WRITES_ON)
    await lab.open_to(Step.IMPLEMENT_PLAN)
    work = partial(lab.running, lab.call(Step.IMPLEMENT_PLAN))
    await halted(work, (lab.worktree / "src/leftover.txt").exists, "worker_shutdown")
    return lab.runs[0]


async def test_a_tool_that_outlives_its_killed_supervisor_is_swept_before_the_agent_goes_on(lab: StepLab) -> None:
    """The run's mark finds the tool in its own session, and the resumed agent writes alone."""
    lab.agent(_WRITES_ON)
    await lab.open_to(Step.IMPLEMENT_PLAN)
    running = asyncio.create_task(lab.run(Step.IMPLEMENT_PLAN))
    await wait_until((lab.worktree / "src/leftover.txt").exists)
    (run,) = lab.runs
    assert len(carriers(mark_of(run))) >= 2  # agent and tool, and in a sandbox two processes more
    os.kill(supervisor_of(run), signal.SIGKILL)
    done = await running
    assert (done.verdict, done.result_text, done.recovered_by) == (Verdict.DONE, "Alone.", "resume")
    assert carriers(mark_of(run)) == []


async def test_the_rescue_of_a_cancelled_work_order_is_taken_when_nothing_writes_any_more(lab: StepLab) -> None:
    """Agent and tools are dead before the rescue, so the worktree equals the rescue."""
    run = await _left(lab)
    os.kill(supervisor_of(run), signal.SIGKILL)
    ended = await lab.end_work(Step.IMPLEMENT_PLAN)
    assert ended.verdict is Verdict.CANCELLED
    assert carriers(mark_of(run)) == []
    (rescue,) = ended.rescues
    assert not lab.parts.host.snapshots.differs(lab.place, rescue.snapshot)


async def test_a_living_agent_of_a_cancelled_work_order_is_ended_by_its_host(lab: StepLab) -> None:
    """The end of the work stops agent and tool, takes the rescue, and reports usage and refused hosts."""
    run = await _left(lab)
    assert len(carriers(mark_of(run))) >= 2  # agent and tool, and in a sandbox two processes more
    with (run.folder / NETWORK_LOG).open("a", encoding="utf-8") as log:
        log.write('{"host": "pypi.example", "port": 443, "allowed": false}\n')
    with taken_values(PROXY_REFUSALS) as refused:
        ended = await lab.end_work(Step.IMPLEMENT_PLAN)
    assert refused == [(1, {"step": "implement_plan", "agent": "scripted"})]
    assert (ended.verdict, ended.agent_starts, ended.run) == (Verdict.CANCELLED, 1, run.name)
    assert carriers(mark_of(run)) == []
    assert [rescue.snapshot for rescue in ended.rescues] == lab.snapshots("rescue")


_UNREAD = """
init()
turn('m1')
if resumed:
    note('asked')
    while os.path.exists('waits'): time.sleep(0.01)
result('No answer.')
"""


async def test_the_end_of_a_work_order_adds_what_nobody_was_told_to_what_it_knows(lab: StepLab) -> None:
    """The end of the work adds the usage of a finalizer whose worker died to the step's known usage."""
    lab.agent(_UNREAD)
    await lab.open_to(Step.IMPLEMENT_PLAN)
    call = lab.call(Step.IMPLEMENT_PLAN)
    unread = await lab.running(call)
    lab.write("waits", "")
    await halted(
        lambda within: lab.finalize(call, unread, within=within), lambda: "asked" in lab.journal, "worker_shutdown"
    )
    ended = await lab.end_work(Step.IMPLEMENT_PLAN, unread, "finalize-1")
    assert (ended.agent_starts, ended.usage) == (2, unread.usage.plus(unread.usage))
    assert carriers(mark_of(lab.runs[-1])) == []


async def test_the_end_of_a_work_order_adds_nothing_where_no_activity_was_under_way(lab: StepLab) -> None:
    """If step and finalizer have returned, the end of the work adds no usage."""
    lab.agent(_UNREAD)
    await lab.open_to(Step.IMPLEMENT_PLAN)
    call = lab.call(Step.IMPLEMENT_PLAN)
    known = await lab.finalize(call, await lab.running(call))
    ended = await lab.end_work(Step.IMPLEMENT_PLAN, known, "")
    assert (ended.verdict, ended.run, ended.agent_starts) == (Verdict.CANCELLED, known.run, 2)
    assert (ended.usage, ended.duration_seconds) == (known.usage, known.duration_seconds)


async def test_what_a_lonely_agent_did_is_kept_by_the_next_worker_once(lab: StepLab) -> None:
    """An agent without a worker ends at its limit, and starting workers take one rescue of its work."""
    settings = lab.parts.host.settings.model_copy(update={"orphan_limit_seconds": 0.2})
    async with parts_of(settings) as parts:
        run = await _left(replace(lab, parts=parts))
        end = await wait_until(run.exit)
        assert end.cause == "orphan_limit"
        for _ in range(2):
            keep_what_was_left_alone(parts.host)
    assert len(lab.snapshots("rescue")) == 1
    assert carriers(mark_of(run)) == []


async def test_a_note_that_a_dying_machine_left_half_written_takes_no_other_with_it(lab: StepLab) -> None:
    """After a half-written note the next note stands on its own line, and is found."""
    await lab.open_to(Step.IMPLEMENT_PLAN, {})
    host, call = lab.parts.host, lab.call(Step.IMPLEMENT_PLAN)
    with (lab.place.records / "rescues.jsonl").open("ab") as notes:
        notes.write(b'{"snapshot": "wo-1/00')
    lab.write("src/late.txt", "late\n")
    rescue = host.snapshots.rescue(lab.place, "a test takes it", "a step of before")
    assert rescue is not None
    assert rescue in (await lab.running(call)).rescues
