import asyncio
import os
import re
import signal
import sys
import time
from dataclasses import replace
from functools import partial
from operator import not_
from pathlib import Path

import psutil
import pytest
from fakes import attempting
from fakes.agent_lab import Lab, agent_of, carriers, dropped, end_of, mark_of, supervisor_of
from fakes.waiting import wait_until

from activities.turns.turn_budget import run_turn
from septet.agents.clis.adapter import Turn
from septet.agents.runs.lease import Lease
from septet.agents.sandbox.connections import end_agent
from septet.agents.turns.follow import Pace
from septet.agents.turns.turn_runs import TurnResult
from septet.contracts.order import Timeouts
from septet.errors import (
    AgentApiError,
    AgentApiUnavailableError,
    AgentGaveUpError,
    AgentLimitError,
    AgentMissingError,
    AgentRefusedError,
    SupersededError,
)

pytestmark = pytest.mark.law


@pytest.mark.parametrize("signals", [[signal.SIGKILL], [signal.SIGHUP, signal.SIGINT, signal.SIGTERM]])
async def test_an_agent_survives_its_worker_and_is_adopted_from_a_new_process(
    lab: Lab, signals: list[int]
) -> None:
    """SIGKILL of the worker and signals to its group leave the agent alive; a new process adopts the agent."""
    lab.agent("init(); wait_for('../go'); result('done')")
    argv = (sys.executable, "-P", attempting.__file__, str(lab.root), str(lab.program))
    env = {**os.environ, "PYTHONPATH": str(Path(attempting.__file__).parents[1])}
    worker = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE, process_group=0, env=env)
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"living\n"
    for number in signals:
        os.killpg(worker.pid, number)
    await worker.communicate()
    attempt = asyncio.ensure_future(lab.run_turn())
    await wait_until(lambda: [each for each in lab.progress if each.epoch == 2])
    lab.let_go()
    turn_result = await attempt
    assert (turn_result.outcome.text, turn_result.recovered_by) == ("done", "adopt")
    assert lab.journal == ["start new"]


async def test_an_agent_that_finished_while_nobody_looked_is_read(lab: Lab) -> None:
    """The outcome of an agent that ended between two attempts is read from disk, and no second agent starts."""
    lab.agent("init(); wait_for('../go'); result('done')")
    first = asyncio.ensure_future(lab.run_turn())
    await lab.said("system/init")
    await dropped(first)
    lab.let_go()
    await wait_until(lab.progress[0].run.exit)
    turn_result = await lab.run_turn()
    assert (turn_result.outcome.text, turn_result.recovered_by, turn_result.agent_starts) == ("done", "read", 1)
    assert lab.journal == ["start new"]


async def test_a_killed_agent_is_resumed_and_told_what_happened(lab: Lab) -> None:
    """After SIGKILL of the agent its session is resumed; the prompt says that the outcome is unknown."""
    lab.agent("""
        init()
        if not resumed:
            os.kill(os.getpid(), signal.SIGKILL)
        assert "outcome is unknown" in prompt and "git status" in prompt, prompt
        result("done")
    """)
    turn_result = await lab.run_turn()
    assert (turn_result.outcome.text, turn_result.recovered_by, turn_result.agent_starts) == ("done", "resume", 2)
    assert lab.journal == ["start new", "start resume"]
    assert lab.returned == []


async def test_an_agent_without_a_session_runs_again_from_the_checkpoint(lab: Lab) -> None:
    """Without a session the worktree returns to the checkpoint, and the agent starts again."""
    lab.agent("""
        if not os.path.exists("../crashed"):
            open("../crashed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        init(); result("done")
    """)
    turn_result = await lab.run_turn()
    assert (turn_result.outcome.text, turn_result.recovered_by, turn_result.agent_starts) == ("done", "rerun", 2)
    assert lab.returned == ["returned to the checkpoint"]
    assert lab.journal == ["start new", "start new"]


async def test_an_agent_that_crashes_on_every_rung_is_given_up(lab: Lab) -> None:
    """A final error names the run's folder and `septet retry`; another attempt starts no further agent."""
    lab.agent("init(); os.kill(os.getpid(), signal.SIGKILL)")
    for _ in range(2):
        with pytest.raises(AgentGaveUpError) as caught:
            await lab.run_turn()
    assert lab.journal == ["start new", "start resume", "start new"]
    assert not caught.value.retryable
    assert str(lab.root / "runs" / "wo-1" / "5-implement_plan-3") in caught.value.message
    assert "septet retry" in caught.value.remedy


async def test_a_start_that_prints_nothing_is_ended_and_tried_once_more(lab: Lab) -> None:
    """The second start begins from the checkpoint; after a second silent start the error quotes stderr."""
    lab.agent("sys.stderr.write('Error: it waits.'); sys.stderr.flush(); time.sleep(300)")
    with pytest.raises(AgentLimitError, match="nothing for too long. Error: it waits"):
        await lab.run_turn(lab.request(limits=Timeouts(idle_seconds=2.0)))
    assert (lab.journal, lab.returned) == (["start new", "start new"], ["returned to the checkpoint"])


async def test_a_killed_supervisor_takes_its_agent_along_and_its_leftovers_are_swept(lab: Lab) -> None:
    """When the supervisor is killed, agent and tools die before the session is resumed: one writer at a time."""
    lab.agent("""
        init()
        if not resumed:
            detached(lambda: time.sleep(300))
            turn("m1")
            time.sleep(300)
        result("done")
    """)
    attempt, run = await lab.begun("assistant")
    assert len(carriers(mark_of(run))) == 2
    os.kill(supervisor_of(run), signal.SIGKILL)
    turn_result = await attempt
    assert (turn_result.outcome.text, turn_result.recovered_by) == ("done", "resume")
    assert carriers(mark_of(run)) == []
    assert end_of(run).cause == "lost"


async def test_an_agent_whose_container_ended_is_resumed_however_often_that_happens(lab: Lab) -> None:
    """The end of the machine or container is no crash of the agent and uses none of its tries."""
    lab.agent("init(); turn('m1'); wait_for('../go'); result('done')")
    for _ in range(4):
        attempt = asyncio.ensure_future(lab.run_turn())
        run = await lab.said_anew("assistant")
        await dropped(attempt)
        supervisor = psutil.Process(supervisor_of(run))
        supervisor.kill()
        await wait_until(run.lives, not_)
        lock = run.folder / "lock"
        lock.write_text(re.sub('"pid_namespace": "[^"]*"', '"pid_namespace": "pid:[1]"', lock.read_text()))
    lab.let_go()
    turn_result = await lab.run_turn()
    assert (turn_result.outcome.text, turn_result.recovered_by, turn_result.agent_starts) == ("done", "resume", 5)
    assert lab.returned == []


async def test_a_refusing_api_is_not_asked_again(lab: Lab) -> None:
    """An authentication error stops at once and names the remedy."""
    lab.agent("init(); api_error(401)")
    with pytest.raises(AgentApiError) as caught:
        await lab.run_turn()
    assert not caught.value.retryable
    assert "septet retry" in caught.value.remedy
    assert len(lab.journal) == 1


@pytest.mark.parametrize(
    ("fails", "start"), [("api_error(529)", "new"), ("turn('m1'); api_error(529, more=USED)", "resume")]
)
async def test_a_busy_api_is_waited_for_and_the_next_attempt_starts_an_agent(
    lab: Lab, fails: str, start: str
) -> None:
    """The error says how long to wait; a session that had worked is resumed, so that its work is not paid again."""
    lab.agent(f"""
        USED = ',"usage":{{"output_tokens":2}}'
        init()
        if not os.path.exists("../busy"):
            open("../busy", "w").close()
            {fails}
        result("done")
    """)
    with pytest.raises(AgentApiUnavailableError) as caught:
        await lab.run_turn()
    assert (caught.value.retryable, caught.value.retry_after_seconds) == (True, 30.0)
    assert (await lab.run_turn()).outcome.text == "done"
    assert (lab.journal, lab.returned) == (["start new", f"start {start}"], [])


async def test_two_attempts_at_once_start_one_agent(lab: Lab) -> None:
    """Of two attempts with one key, the later one carries the turn out, and only one agent starts."""
    lab.agent("init(); wait_for('../go'); result('done')")
    attempts = [asyncio.ensure_future(lab.run_turn()) for _ in range(2)]
    await wait_until(lambda: 2 in {each.epoch for each in lab.progress})
    lab.let_go()
    earlier, later = await asyncio.gather(*attempts, return_exceptions=True)
    assert isinstance(later, TurnResult)
    assert later.outcome.text == "done"
    assert isinstance(earlier, TurnResult | SupersededError)
    assert lab.journal == ["start new"]


async def test_an_old_attempt_that_wakes_ends_nothing_of_a_later_one(lab: Lab) -> None:
    """A late attempt of an earlier workflow run leaves the agent of the later run alone."""
    lab.agent("init(); wait_for('../go'); result('done')")
    old = lab.request(run_id="run-1")
    old_lease = Lease.take(lab.runtime.runs, old.key)
    later = asyncio.ensure_future(lab.run_turn(lab.request(run_id="run-2")))
    await lab.said("system/init")
    with pytest.raises(SupersededError):
        await run_turn(old, lease=old_lease, on_progress=lab.progress.append, leave_work=_never)
    lab.let_go()
    assert (await later).outcome.text == "done"
    assert lab.journal == ["start new"]


async def _never() -> None:
    pytest.fail("a superseded attempt has returned to a checkpoint")


async def test_another_workflow_run_ends_what_it_finds_and_starts_anew(lab: Lab) -> None:
    """After a reset, the earlier run's agent is ended, the checkpoint restored, and a new agent started."""
    lab.agent("init(); result('done') if os.path.exists('../go') else time.sleep(300)")
    stale = asyncio.ensure_future(lab.run_turn(lab.request(run_id="run-1")))
    run = await lab.said("system/init")
    lab.let_go()
    turn_result = await lab.run_turn(lab.request(run_id="run-2"))
    assert (turn_result.outcome.text, turn_result.agent_starts) == ("done", 1)
    assert lab.returned == ["returned to the checkpoint"]
    superseded = await stale
    assert (superseded.outcome.ended, superseded.outcome.kind) == ("cancelled", "superseded")
    assert end_of(run).why == "superseded"


async def test_a_cancelled_agent_is_ended_with_all_that_it_started(lab: Lab) -> None:
    """The end of an agent ends its tools too, and the attempt reports that the agent was cancelled."""
    lab.agent("init(); detached(lambda: time.sleep(300)); turn('m1'); time.sleep(300)")
    attempt, run = await lab.begun("assistant")
    record = await end_agent(run, "cancelled")
    assert record is not None
    assert (record.cause, record.why, record.swept) == ("ended", "cancelled", 1)
    assert carriers(mark_of(run)) == []
    turn_result = await attempt
    assert (turn_result.outcome.ended, turn_result.outcome.kind) == ("cancelled", "cancelled")
    assert turn_result.outcome.session_id is not None


async def test_what_an_agent_leaves_in_the_background_is_waited_for_a_moment(lab: Lab) -> None:
    """A file that a background process writes soon is kept; a process that does not end is killed and reported."""
    lab.agent("""
        def write_late():
            time.sleep(1)
            open("late.txt", "w").write("late")
        init()
        detached(write_late)
        result("done")
    """)
    turn_result = await lab.run_turn()
    assert (lab.worktree / "late.txt").read_text() == "late"
    assert turn_result.outcome.warnings == ()
    lab.agent("init(); detached(lambda: time.sleep(300)); result('done')")
    turn_result = await lab.run_turn(lab.request(activity_id="6"))
    assert turn_result.outcome.warnings == ("processes that it left in the background were ended: 1",)
    assert carriers(mark_of(turn_result.run)) == []


async def test_a_cancel_does_not_wait_for_what_an_agent_left(lab: Lab) -> None:
    """A request to end an agent that has already ended returns without a wait for its background processes."""
    lab.agent("init(); detached(lambda: time.sleep(300)); turn('m1'); result('done')")
    attempt, run = await lab.begun("result/success")
    await wait_until(partial(psutil.pid_exists, agent_of(run)), not_)
    began = time.monotonic()
    assert await end_agent(run, "cancelled") is not None
    assert time.monotonic() - began < 4
    assert carriers(mark_of(run)) == []
    assert (await attempt).outcome.text == "done"


async def test_the_turn_limit_is_held_and_the_session_resumed_once(lab: Lab) -> None:
    """An agent over its turn limit is ended and resumed once; then the limit is reported."""
    lab.agent("""
        init()
        for number in range(100000):
            turn("m%d" % number)
            time.sleep(0.01)
    """)
    with pytest.raises(AgentLimitError, match="turn limit"):
        await lab.run_turn(lab.request(limits=Timeouts(turns=3)))
    assert lab.journal == ["start new", "start resume"]


async def test_a_session_that_was_never_told_is_resumed_by_the_id_that_was_given(lab: Lab) -> None:
    """If a CLI hangs before it names its session, the session of its start is resumed."""
    lab.agent("""
        if resumed:
            result("done")
        else:
            say('{"type":"system","subtype":"status"}')
            time.sleep(300)
    """)
    turn_result = await lab.run_turn(lab.request(limits=Timeouts(idle_seconds=3.0)))
    first = lab.runtime.runs.of("wo-1")[0].record
    assert (turn_result.outcome.text, lab.journal) == ("done", ["start new", "start resume"])
    assert first is not None
    assert turn_result.outcome.session_id == first.session_id
    assert {each.session_id for each in lab.progress if each.last_event} == {first.session_id}


async def test_a_cli_that_goes_on_after_its_result_is_ended_after_a_grace(lab: Lab) -> None:
    """The result counts although the engine had to end the CLI."""
    lab.agent("init(); result('done'); time.sleep(300)")
    lab.runtime = replace(lab.runtime, pace=Pace(poll_seconds=0.02, result_grace_seconds=0.1))
    turn_result = await lab.run_turn()
    assert (turn_result.outcome.ended, turn_result.outcome.text) == ("ok", "done")
    assert turn_result.outcome.signal == signal.SIGTERM


async def test_a_program_that_refuses_says_why(lab: Lab) -> None:
    """A program that ends without an event is not started again; the error quotes its stderr."""
    lab.agent("sys.stderr.write('error: unknown option'); sys.exit(1)")
    with pytest.raises(AgentRefusedError, match="unknown option"):
        await lab.run_turn()
    assert len(lab.journal) == 1


async def test_a_program_that_is_missing_is_named(lab: Lab) -> None:
    """A missing program leaves no run, and the writer's lock is free afterwards."""
    lab.agent("init()")
    lab.program.unlink()
    for _ in range(2):
        with pytest.raises(AgentMissingError, match="SEPTET_SCRIPTED_PATH"):
            await lab.run_turn()
    assert lab.runtime.runs.of("wo-1") == []


async def test_a_follow_up_turn_is_asked_whole_when_it_is_resumed(lab: Lab) -> None:
    """The resumed turn gets its whole prompt again, besides the note on what happened."""
    lab.agent("""
        init()
        if not os.path.exists("../crashed"):
            open("../crashed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        result("again" if "Only the JSON." in prompt and "outcome is unknown" in prompt else "lost")
    """)
    again = Turn(prompt="Only the JSON.", worktree=lab.worktree, resume_id="s-9", tools="none")
    turn_result = await lab.run_turn(lab.request(turn=again))
    assert turn_result.outcome.text == "again"
    assert lab.journal == ["start resume", "start resume"]
    assert turn_result.outcome.session_id == "s-9"


@pytest.mark.parametrize(
    ("refuses", "told"),
    [
        ("api_error(400, 'Prompt is too long')", "became too long"),
        ("refuse('No conversation found with session ID: s-9')", "could not be continued"),
        ("api_error(400, 'messages.43: `thinking` blocks cannot be modified.')", "could not be continued"),
    ],
    ids=["too long", "unknown", "broken"],
)
async def test_a_session_that_cannot_be_gone_on_with_is_left_for_good(lab: Lab, refuses: str, told: str) -> None:
    """After an unusable session and a usage limit, the next new session gets the note on its work again."""
    lab.agent(f"""
        def refuse(words):
            say('{{"type":"result","subtype":"error_during_execution","is_error":true,'
                '"errors":["%s"],"session_id":"s-9"}}' % words)
            sys.exit(1)
        if resumed:
            {refuses}
        init()
        if not os.path.exists("../limited"):
            open("../limited", "w").close()
            api_error(429, "usage limit reached")
        result("told" if "{told}" in prompt else "done")
    """)
    request = lab.request(turn=Turn("Work.\n", lab.worktree, resume_id="s-9"))
    with pytest.raises(AgentApiUnavailableError):
        await lab.run_turn(request)
    turn_result = await lab.run_turn(request)
    assert lab.journal == ["start resume", "start new", "start new"]
    assert (turn_result.outcome.text, lab.returned) == ("told", [])


async def test_a_run_that_cannot_be_read_is_nobodys(lab: Lab) -> None:
    """A run with an empty record, as a power loss leaves it, is ignored: the step starts from its checkpoint."""
    lab.agent("init(); result('done')")
    run = (await lab.run_turn()).run
    (run.folder / "run.json").write_text("", encoding="utf-8")
    await wait_until(run.exit)
    (run.folder / "exit.json").unlink()
    turn_result = await lab.run_turn()
    assert (turn_result.outcome.text, turn_result.agent_starts) == ("done", 1)
    assert lab.returned == ["returned to the checkpoint"]


async def test_a_long_state_directory_is_no_hindrance(lab: Lab) -> None:
    """A run's path may be longer than a socket's address: the agent is still adopted and ended."""
    deep = lab.root / ("d" * 100) / ("e" * 100)
    lab.runtime = replace(lab.runtime, runs=replace(lab.runtime.runs, root=deep / "runs"))
    lab.agent("init(); time.sleep(300)")
    attempt, run = await lab.begun("system/init")
    await end_agent(run, "cancelled")
    assert (await attempt).outcome.ended == "cancelled"


async def test_an_attempt_that_is_cancelled_while_it_starts_an_agent_loses_nothing(lab: Lab) -> None:
    """A cancel at any moment of the start leaves no agent, or an agent that the next attempt adopts."""
    lab.agent("init(); wait_for('../go'); result('done')")
    for moment in range(12):
        attempt = asyncio.ensure_future(lab.run_turn())
        await asyncio.sleep(moment * 0.001)
        attempt.cancel()
        await asyncio.wait([attempt])
    lab.let_go()
    assert (await lab.run_turn()).outcome.text == "done"
    assert lab.journal == ["start new"]


async def test_agents_leave_no_zombie(lab: Lab) -> None:
    """The worker reaps supervisors that have ended."""
    lab.agent("init(); result('done')")
    runs = [(await lab.run_turn(lab.request(activity_id=str(number)))).run for number in range(3)]
    gone = {supervisor_of(run) for run in runs}
    await wait_until(lambda: not gone & {child.pid for child in psutil.Process().children()})


async def test_session_that_a_turn_goes_on_with_outlives_an_agent_that_said_nothing(lab: Lab) -> None:
    """A resumed session is kept if the process died before its first event."""
    silent = 'if not os.path.exists("../died"):\n    open("../died", "w").close()\n    os.kill(os.getpid(), 9)\n'
    lab.agent(f"{silent}init()\nresult(session)\n")
    going_on = Turn("Go on.\n", lab.worktree, resume_id="a-session")
    turn_result = await lab.run_turn(lab.request(turn=going_on))
    assert (turn_result.outcome.text, turn_result.recovered_by) == ("a-session", "resume")
    assert lab.journal == ["start resume", "start resume"]
    assert lab.returned == []


async def test_an_api_error_that_nobody_knows_is_tried_three_times_with_its_cost(lab: Lab) -> None:
    """Each try may be paid: the pauses grow, each error names the cost so far, and the third error is final."""
    spent = ',"usage":{"input_tokens":8,"output_tokens":2},"total_cost_usd":0.25'
    lab.agent(f"init(); turn('m1'); api_error(0, 'The teapot is short and stout.', more={spent!r})")
    waits = []
    for number, cost in ((1, "0.25 USD"), (2, "0.50 USD")):
        with pytest.raises(AgentApiUnavailableError) as caught:
            await lab.run_turn()
        assert "The teapot is short and stout." in caught.value.message
        assert f"attempt {number} of 3" in caught.value.message
        assert cost in caught.value.message
        waits.append(caught.value.retry_after_seconds)
    assert waits == [30.0, 60.0]
    for _ in range(2):  # a later attempt reads the same error and starts no agent
        with pytest.raises(AgentApiError, match="short and stout.*attempt 3 of 3.*0.75 USD, 30 tokens") as final:
            await lab.run_turn()
        assert "septet retry" in final.value.remedy
    assert lab.journal == ["start new", "start resume", "start resume"]


async def test_an_api_that_is_busy_is_waited_for_between_errors_that_nobody_knows(lab: Lab) -> None:
    """Only unknown errors count as tries; a busy API does not."""
    lab.agent("""
        init()
        starts = len(open("../journal").read().splitlines())
        if starts == 4:
            result("done")
        else:
            api_error(529 if starts != 3 else 0, "busy" if starts != 3 else "Who knows.")
    """)
    for words in ("busy", "busy", "attempt 1 of 3"):
        with pytest.raises(AgentApiUnavailableError, match=words):
            await lab.run_turn()
    assert (await lab.run_turn()).outcome.text == "done"


async def test_an_agent_without_a_session_is_tried_three_times_too(lab: Lab) -> None:
    """The tries count although no event names a session."""
    lab.agent(
        """say('{"type":"result","is_error":true,"result":"API Error: odd","terminal_reason":"api_error"}')"""
    )
    for _ in range(2):
        with pytest.raises(AgentApiUnavailableError, match="odd"):
            await lab.run_turn()
    with pytest.raises(AgentApiError, match="attempt 3 of 3; cost so far: unknown"):
        await lab.run_turn()
