"""Real processes that serve many turns, killed and stopped at every stage."""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import not_
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from fakes.agent_lab import Lab, agent_of, carriers, dropped, mark_of, supervisor_of
from fakes.small_disk import small_disk
from fakes.waiting import wait_until

from septet.agents.clis.adapter import Adapter, Turn
from septet.agents.runs.folders import Run, Runs
from septet.agents.sandbox.connections import end_agent
from septet.agents.supervisor.warm_process import REQUEST_SECONDS
from septet.agents.turns.end_of_turn import end_all
from septet.agents.turns.turn_runs import TurnResult
from septet.agents.turns.warm import end_warm, warm_orders
from septet.contracts.order import Timeouts
from septet.errors import AgentApiError, AgentCrashedError
from septet.system.durable import take_lock

pytestmark = pytest.mark.law

ANSWERS = "turn('m%d' % number); result(heard)"
WAITS = "turn('m%d' % number); number == 2 and wait_for('../go'); result(heard)"


def session_of(turn_result: TurnResult) -> str:
    assert turn_result.outcome.session_id is not None
    return turn_result.outcome.session_id


def starts(lab: Lab) -> list[str]:
    return [line for line in lab.journal if line.startswith("start")]


def is_dead(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def begun(lab: Lab, body: str) -> TurnResult:
    lab.warm_agent(body)
    return await lab.run_turn(lab.warm_turn(1))


async def in_second_turn(lab: Lab) -> tuple[TurnResult, "asyncio.Future[TurnResult]", Run]:
    """Begin a process's second turn; return the first turn's result, the second's attempt, and its run."""
    first = await begun(lab, WAITS)
    attempt = asyncio.ensure_future(lab.run_turn(lab.warm_turn(2, session_of(first))))
    await wait_until(lambda: lab.progress[-1].run.name != first.run.name and lab.progress[-1].turns == 1)
    return first, attempt, lab.progress[-1].run


async def test_one_process_serves_many_turns_of_a_session(lab: Lab) -> None:
    """Three turns are three runs with outcomes of their own, in one process with one memory."""
    first = await begun(lab, ANSWERS)
    second = await lab.run_turn(lab.warm_turn(2, session_of(first)))
    third = await lab.run_turn(lab.warm_turn(3, session_of(first)))
    assert (second.outcome.text, third.outcome.text) == ("Turn 1.;Turn 2.;", "Turn 1.;Turn 2.;Turn 3.;")
    assert starts(lab) == ["start new"]
    assert agent_of(first.run) == agent_of(second.run) == agent_of(third.run)
    for turn_result, number in ((first, 1), (second, 2), (third, 3)):
        end = await wait_until(turn_result.run.exit)
        assert (end.cause, end.exit_code, end.pid) == ("exited", 0, agent_of(first.run))
        assert (turn_result.agent_starts, turn_result.recovered_by) == (1, None)
        assert (turn_result.run.folder / "prompt.md").read_text(encoding="utf-8") == f"Turn {number}.\n"
        await wait_until(turn_result.run.lives, not_)
    name = first.run.folder.name
    assert [run.record.began_in for run in lab.runtime.runs.of("wo-1") if run.record] == [None, name, name]


@dataclass(frozen=True)
class Unhurried:
    """An adapter on a busy machine, whose last question before the order exceeds the supervisor's wait."""

    known: Any

    def __getattr__(self, name: str) -> Any:
        """Return the attribute, after a delay for `compiled`."""
        if name == "compiled":
            time.sleep(1.25 * REQUEST_SECONDS)
        value = getattr(self.known, name)
        return Unhurried(value) if name == "capabilities" else value


async def test_a_process_waits_for_a_slow_order(lab: Lab) -> None:
    """A process whose next order takes seconds serves that turn, and no further run is made."""
    first = await begun(lab, ANSWERS)
    request = lab.warm_turn(2, session_of(first))
    second = await lab.run_turn(replace(request, adapter=cast("Adapter", Unhurried(request.adapter))))
    assert second.outcome.text == "Turn 1.;Turn 2.;"
    assert agent_of(second.run) == agent_of(first.run)
    assert [run.name for run in lab.runtime.runs.of("wo-1")] == [first.run.name, second.run.name]


async def test_a_process_that_starts_another_at_its_result_serves_the_next_turn(lab: Lab) -> None:
    """A process that has just started another program can be stopped between turns, and serves the next turn."""
    body = """
        if number == 1:
            import ctypes, threading
            libc = ctypes.CDLL(None)
            stack = ctypes.create_string_buffer(1 << 20)
            top = ctypes.c_void_p(ctypes.addressof(stack) + (1 << 20))
            own_memory, until_it_ends, told_by_a_signal = 0x100, 0x4000, 17
            flags = own_memory | until_it_ends | told_by_a_signal
            sleeps = (ctypes.cast(libc.sleep, ctypes.c_void_p), top, flags, ctypes.c_void_p(1))
            threading.Thread(target=libc.clone, args=sleeps, daemon=True).start()
            while len(os.listdir("/proc/self/task")) < 2 or "D (" not in "".join(
                open(f"/proc/self/task/{task}/status").read() for task in os.listdir("/proc/self/task")
            ):
                time.sleep(0.001)
        turn('m%d' % number)
        result(heard)
    """
    first = await begun(lab, body)
    second = await lab.run_turn(lab.warm_turn(2, session_of(first)))
    assert agent_of(second.run) == agent_of(first.run)


async def test_an_idle_process_cannot_write(lab: Lab) -> None:
    """Between turns the agent's threads and group are stopped, and escaped tools are dead."""
    body = """
        def scribble(path):
            while True:
                open(path, "a").write("x")
                time.sleep(0.001)

        if number == 1:
            import threading
            threading.Thread(target=scribble, args=("by-thread",), daemon=True).start()
            if os.fork() == 0:
                scribble("by-child")
            detached(lambda: scribble("by-daemon"))
            for path in ("by-thread", "by-child", "by-daemon"):
                wait_for(path)
        else:
            size = os.path.getsize("by-thread")
            while os.path.getsize("by-thread") == size:
                time.sleep(0.01)
        result(heard)
    """
    first = await begun(lab, body)
    lock = lab.runtime.runs.lock_writer("wo-1")
    assert lock is not None
    os.close(lock)
    paths = [lab.worktree / name for name in ("by-thread", "by-child", "by-daemon")]
    sizes = [path.stat().st_size for path in paths]
    await asyncio.sleep(0.2)
    assert [path.stat().st_size for path in paths] == sizes
    assert psutil.Process(agent_of(first.run)).status() == psutil.STATUS_STOPPED
    assert (await lab.run_turn(lab.warm_turn(2, session_of(first)))).outcome.ended == "ok"
    assert paths[0].stat().st_size > sizes[0]
    assert paths[2].stat().st_size == sizes[2]
    end_warm(lab.runtime.runs, "wo-1")
    assert carriers(mark_of(first.run)) == []


async def test_a_git_of_the_agents_own_group_does_not_stand_still(lab: Lab) -> None:
    """A waiting git is killed because it would hold the repository's locks; other programs continue later."""
    sleep = shutil.which("sleep")
    assert sleep is not None
    (lab.root / "git").symlink_to(sleep)
    body = """
        if number == 1:
            for program in ("../git", "/bin/sleep"):
                child = os.fork()
                if child == 0:
                    os.execv(program, [program, "300"])
                while open("/proc/%d/comm" % child).read().strip() not in program:
                    time.sleep(0.01)
        result(heard)
    """
    first = await begun(lab, body)
    agent = psutil.Process(agent_of(first.run))
    assert [child.name() for child in agent.children() if child.status() == psutil.STATUS_STOPPED] == ["sleep"]
    second = await lab.run_turn(lab.warm_turn(2, session_of(first)))
    assert (agent_of(second.run), second.outcome.ended) == (agent.pid, "ok")


@pytest.mark.parametrize("whom", [agent_of, supervisor_of])
async def test_a_killed_process_is_resumed_in_a_new_one(confined: Lab, whom: Callable[[Run], int]) -> None:
    """A kill in a turn leaves no process and costs one resume; the new process serves the next turns."""
    first, attempt, run = await in_second_turn(confined)
    killed = agent_of(run)
    os.kill(whom(run), signal.SIGKILL)
    await wait_until(lambda: is_dead(killed))
    confined.let_go()
    second = await attempt
    assert (second.outcome.ended, second.recovered_by, second.agent_starts) == ("ok", "resume", 2)
    assert carriers(mark_of(run)) == []
    third = await confined.run_turn(confined.warm_turn(3, session_of(first)))
    assert (third.outcome.text or "").startswith("Turn 1.;Turn 2.;")
    assert starts(confined) == ["start new", "start resume"]
    assert agent_of(third.run) == agent_of(second.run) != killed
    end_warm(confined.runtime.runs, "wo-1")
    assert carriers(mark_of(third.run)) == []


@pytest.mark.parametrize("whom", [agent_of, supervisor_of])
async def test_a_process_that_died_between_turns_is_started_anew(lab: Lab, whom: Callable[[Run], int]) -> None:
    """The next turn kills the leftovers and resumes the session; the death costs the step no try."""
    left = "number == 1 and os.fork() == 0 and time.sleep(300); result(heard)"
    first = await begun(lab, left)
    os.kill(whom(first.run), signal.SIGKILL)
    await wait_until(lambda: is_dead(agent_of(first.run)))
    second = await lab.run_turn(lab.warm_turn(2, session_of(first)))
    assert (second.outcome.text, second.recovered_by, second.agent_starts) == ("Turn 1.;Turn 2.;", None, 1)
    assert starts(lab) == ["start new", "start resume"]
    assert carriers(mark_of(first.run)) == []


async def test_a_killed_process_that_still_holds_its_lock_serves_no_turn(lab: Lab) -> None:
    """The kernel closes a killed process's socket before its lock: the turn waits for the lock and starts anew."""
    first = await begun(lab, ANSWERS)
    await wait_until(lambda: not first.run.lives())
    os.kill(supervisor_of(first.run), signal.SIGKILL)
    await wait_until(lambda: is_dead(agent_of(first.run)))
    lock = await wait_until(lambda: take_lock(first.run.folder.parent / "warm.lock"))
    asyncio.get_running_loop().call_later(0.3, os.close, lock)
    second = await lab.run_turn(lab.warm_turn(2, session_of(first)))
    assert (second.outcome.text, second.recovered_by, second.agent_starts) == ("Turn 1.;Turn 2.;", None, 1)
    assert starts(lab) == ["start new", "start resume"]


async def test_a_turn_that_meets_a_dead_agent_has_not_begun(lab: Lab) -> None:
    """A turn that is handed to a dying agent has not begun: a new process serves it, and no crash counts."""
    first = await begun(lab, ANSWERS)
    supervisor = supervisor_of(first.run)
    await wait_until(first.run.lives, not_)  # the process waits for the next turn
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(agent_of(first.run), signal.SIGKILL)
    await wait_until(lambda: is_dead(agent_of(first.run)))
    attempt = asyncio.ensure_future(lab.run_turn(lab.warm_turn(2, session_of(first))))
    await wait_until(lambda: lab.progress[-1].run.name != first.run.name)
    os.kill(supervisor, signal.SIGCONT)
    second = await attempt
    assert (second.outcome.text, second.recovered_by, second.agent_starts) == ("Turn 1.;Turn 2.;", None, 1)
    assert starts(lab) == ["start new", "start resume"]


async def test_the_next_attempt_adopts_a_warm_turn(lab: Lab) -> None:
    """The turn outlives a cancelled attempt; the next attempt follows it to its end in the same process."""
    first, attempt, run = await in_second_turn(lab)
    await dropped(attempt)
    again = asyncio.ensure_future(lab.run_turn(lab.warm_turn(2, session_of(first))))
    await wait_until(lambda: [each for each in lab.progress if each.epoch == 3 and each.run.name == run.name])
    lab.let_go()
    second = await again
    assert (second.outcome.text, second.recovered_by, second.agent_starts) == ("Turn 1.;Turn 2.;", "adopt", 1)
    assert starts(lab) == ["start new"]


async def test_a_warm_turn_that_ended_unseen_is_read(lab: Lab) -> None:
    """The outcome of a turn that ended without an attempt is read from disk, and the process waits on."""
    first, attempt, run = await in_second_turn(lab)
    await dropped(attempt)
    lab.let_go()
    await wait_until(run.exit)
    second = await lab.run_turn(lab.warm_turn(2, session_of(first)))
    assert (second.outcome.text, second.recovered_by) == ("Turn 1.;Turn 2.;", "read")
    assert warm_orders(lab.runtime.runs) == ["wo-1"]


async def test_a_turn_that_was_reset_begins_a_new_session(lab: Lab) -> None:
    """A reset turn begins a new session, because the old one remembers work that the worktree lost."""
    first, attempt, run = await in_second_turn(lab)
    await dropped(attempt)
    lab.runtime.runs.set_aside("wo-1", lab.warm_turn(2).key)
    lab.let_go()
    second = await lab.run_turn(lab.warm_turn(2, session_of(first)))
    assert (second.outcome.text, second.recovered_by, second.agent_starts) == ("Turn 2.;", None, 1)
    assert session_of(second) != session_of(first)
    assert lab.returned == ["returned to the checkpoint"]
    assert is_dead(agent_of(run))


async def test_a_turn_that_does_not_fit_ends_the_process_first(lab: Lab) -> None:
    """Another model, a new session or a cold turn ends the waiting process first."""
    first = await begun(lab, ANSWERS)
    second = await lab.run_turn(lab.warm_turn(2, session_of(first), model="other"))
    assert is_dead(agent_of(first.run))
    third = await lab.run_turn(lab.warm_turn(3))
    assert is_dead(agent_of(second.run))
    assert third.outcome.text == "Turn 3.;"
    lab.agent("init(); result('cold')")
    cold = lab.request(activity_id="4", turn=Turn("Cold.\n", lab.worktree, resume_id=session_of(third)))
    assert (await lab.run_turn(cold)).outcome.text == "cold"
    assert is_dead(agent_of(third.run))
    assert warm_orders(lab.runtime.runs) == []
    assert starts(lab) == ["start new", "start resume", "start new", "start resume"]


async def test_the_engine_holds_the_limits_of_each_turn(lab: Lab) -> None:
    """Limits count for one turn; a turn that reaches a limit is ended with its process and resumed once."""
    lab.warm_agent("""
        for each in range(4):
            turn("m%d-%d" % (number, each))
        number == 2 and not resumed and time.sleep(300)
        result(heard)
    """)
    limits = Timeouts(wall_seconds=100, idle_seconds=3, turns=5)
    first = await lab.run_turn(replace(lab.warm_turn(1), limits=limits))
    second = await lab.run_turn(replace(lab.warm_turn(2, session_of(first)), limits=limits))
    assert (first.agent_starts, second.recovered_by, second.agent_starts) == (1, "resume", 2)
    ends = [await wait_until(run.exit) for run in lab.runtime.runs.of("wo-1")]
    assert [end.cause for end in ends] == ["exited", "idle_limit", "exited"]
    third = await lab.run_turn(replace(lab.warm_turn(3, session_of(first)), limits=limits))
    assert (third.agent_starts, agent_of(third.run)) == (1, agent_of(second.run))


async def test_a_cancelled_warm_turn_ends_the_process(lab: Lab) -> None:
    """The end of a warm turn ends its agent and process, as in any other run."""
    _, attempt, run = await in_second_turn(lab)
    end = await end_agent(run, "cancelled")
    turn_result = await attempt
    assert end is not None
    assert (turn_result.outcome.ended, end.cause, end.why) == ("cancelled", "ended", "cancelled")
    assert is_dead(agent_of(run))
    assert warm_orders(lab.runtime.runs) == []


async def test_the_end_of_a_work_order_ends_what_waits_for_it(lab: Lab) -> None:
    """`end_all` leaves no waiting process, and a second call is no error."""
    first = await begun(lab, ANSWERS)
    assert warm_orders(lab.runtime.runs) == ["wo-1"]
    await end_all(lab.runtime.runs, "wo-1", "closed")
    assert is_dead(agent_of(first.run))
    assert warm_orders(lab.runtime.runs) == []
    await end_all(lab.runtime.runs, "wo-1", "closed")


async def test_a_warm_process_is_ended_in_a_turn_too(lab: Lab) -> None:
    """`end_warm` ends a working process, and the turn's error names the reason."""
    _, attempt, run = await in_second_turn(lab)
    await asyncio.to_thread(end_warm, lab.runtime.runs, "wo-1", "closed")
    assert is_dead(agent_of(run))
    with pytest.raises(AgentCrashedError, match="The agent was stopped: closed"):
        await attempt
    assert warm_orders(lab.runtime.runs) == []


async def test_a_process_waits_no_longer_than_an_orphan(lab: Lab) -> None:
    """Without a next turn the process ends after the orphan limit."""
    lab.runtime = replace(lab.runtime, orphan_limit_seconds=0.3)
    first = await begun(lab, ANSWERS)
    await wait_until(lambda: is_dead(agent_of(first.run)))
    await wait_until(lambda: warm_orders(lab.runtime.runs) == [])
    second = await lab.run_turn(lab.warm_turn(2, session_of(first)))
    assert (second.outcome.text, second.agent_starts) == ("Turn 1.;Turn 2.;", 1)


async def test_a_failed_turn_leaves_no_process(lab: Lab) -> None:
    """A turn that the model API refuses ends the process, and the next turn starts a new one."""
    lab.warm_agent("number == 2 and api_error(401, 'API Error: 401 no'); result(heard)")
    first = await lab.run_turn(lab.warm_turn(1))
    with pytest.raises(AgentApiError, match="API Error: 401"):
        await lab.run_turn(lab.warm_turn(2, session_of(first)))
    await wait_until(lambda: warm_orders(lab.runtime.runs) == [])
    third = await lab.run_turn(lab.warm_turn(3, session_of(first)))
    assert third.outcome.text == "Turn 1.;Turn 2.;Turn 3.;"


async def test_a_long_prompt_and_a_long_answer_pass(lab: Lab) -> None:
    """A prompt and an answer larger than a pipe pass whole, and each turn has its own stderr file."""
    lab.warm_agent(
        "os.write(2, b'said in turn %d' % number); time.sleep(0.1); result('%d ' % len(prompt) + 'x' * 3000000)"
    )
    first = await lab.run_turn(lab.warm_turn(1))
    request = lab.warm_turn(2, session_of(first))
    second = await lab.run_turn(replace(request, turn=replace(request.turn, prompt="y" * 1000000)))
    assert second.outcome.text == "1000000 " + "x" * 3000000
    said = [turn_result.run.stderr.read_bytes() for turn_result in (first, second)]
    assert said == [b"said in turn 1", b"said in turn 2"]


@pytest.mark.small_disk
async def test_a_full_disk_holds_the_agent_up(lab: Lab, tmp_path: Path) -> None:
    """Output waits while the disk is full, and none of it is lost when the disk has room again."""
    with small_disk(tmp_path / "disk") as disk:
        lab.runtime = replace(lab.runtime, runs=Runs(disk.path / "runs"))
        lab.warm_agent("""
            number == 2 and turn("m1") or number == 2 and wait_for("../go")
            result("x" * 300000)
        """)
        first = await lab.run_turn(lab.warm_turn(1))
        attempt = asyncio.ensure_future(lab.run_turn(lab.warm_turn(2, session_of(first))))
        await lab.said_anew("assistant")
        disk.fill()
        lab.let_go()
        done, _ = await asyncio.wait([attempt], timeout=0.5)
        assert not done
        disk.free()
        second = await attempt
        assert (second.outcome.text, second.agent_starts) == ("x" * 300000, 1)
        end_warm(lab.runtime.runs, "wo-1")
        lab.runtime = replace(lab.runtime, runs=Runs(tmp_path / "runs"))


@pytest.mark.needs("bubblewrap")
async def test_a_turn_whose_files_cannot_be_made_leaves_the_one_before_as_it_is(confined: Lab) -> None:
    """The process ends and another serves the turn; record and output of the turn before do not change."""
    lab = confined
    first = await begun(lab, ANSWERS)
    await wait_until(first.run.lives, not_)
    (first.run.folder / "sandbox.json").unlink()  # each turn links to this file, so the next link fails
    kept = {
        path: path.read_bytes() for path in (first.run.folder / "exit.json", first.run.stderr, first.run.stdout)
    }
    second = await lab.run_turn(lab.warm_turn(2, session_of(first)))
    assert (second.outcome.text, second.recovered_by, second.agent_starts) == ("Turn 1.;Turn 2.;", None, 1)
    assert starts(lab) == ["start new", "start resume"]
    assert {path: path.read_bytes() for path in kept} == kept
    assert is_dead(agent_of(first.run))


async def test_a_host_may_keep_no_process(lab: Lab) -> None:
    """Without warm processes each turn is a start of its own, in the session of the turn before."""
    lab.runtime = replace(lab.runtime, warm=False)
    lab.agent("init(); result(session)")
    first = await lab.run_turn(lab.warm_turn(1))
    second = await lab.run_turn(lab.warm_turn(2, session_of(first)))
    assert starts(lab) == ["start new", "start resume"]
    assert second.outcome.text == first.outcome.text
    assert warm_orders(lab.runtime.runs) == []
