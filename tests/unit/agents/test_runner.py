"""Agents whose supervisors are a runner's children, as in containers: workers may end and start."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
from fakes.agent_lab import Lab, carriers, dropped, end_of, mark_of, naming, supervisor_of
from fakes.runners import ENDS_SECONDS, Runner, copy_packages
from fakes.waiting import wait_until

from septet.agents.outcomes.endings import RESTARTED
from septet.agents.sandbox.connections import await_sweep
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.supervisor.recorder import is_recorder
from septet.agents.turns.warm import warm_orders
from septet.errors import AgentCrashedError

pytestmark = pytest.mark.law

ESCAPES = """
    def linger():
        os.execve(sys.executable, ["python", "-IS", "-c", "import time; time.sleep(300)", os.path.abspath("left")], {})

    init()
    if not resumed:
        detached(linger)
        detached(lambda: time.sleep(300))
        turn("m1")
        wait_for("../go")
    result("done")
"""
"""An agent whose tools leave its session; one of the tools has no environment."""


CONNECTS = """
import os, socket, sys
os.setgroups([]); os.setgid(64321); os.setuid(64321)
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
    print("let in")
except OSError as error:
    print(type(error).__name__)
"""
"""A connection by another user of the machine, who has no account."""


async def test_a_runner_holds_processes_between_turns_and_takes_them_along(served: Lab, runner: Runner) -> None:
    """A process serves turns of several attempts; the runner's SIGTERM or SIGKILL ends a waiting process."""
    served.warm_agent("result(heard)")
    session, process = None, runner.start()
    for number, end in ((1, None), (2, signal.SIGTERM), (3, signal.SIGKILL), (4, None)):
        turn_result = await served.run_turn(served.warm_turn(number, session))
        session = turn_result.outcome.session_id
        assert (turn_result.recovered_by, turn_result.agent_starts) == (None, 1)
        if end is not None:
            process.send_signal(end)
            process.wait(ENDS_SECONDS)
            await wait_until(lambda: not warm_orders(served.runtime.runs))
            mark = mark_of(turn_result.run)
            await wait_until(partial(carriers, mark), lambda living: living == [])  # the kernel needs a moment
            process = runner.start()
    assert turn_result.outcome.text == "Turn 1.;Turn 2.;Turn 3.;Turn 4.;"
    assert [line for line in served.journal if line.startswith("start")] == ["start new", *["start resume"] * 2]


async def test_a_killed_runner_takes_its_agents_along_and_they_are_resumed(served: Lab, runner: Runner) -> None:
    """Without a runner the attempt reports a retryable error; the next runner's agent resumes the dead session."""
    process = runner.start()
    served.agent("init(); turn('m1'); wait_for('../go'); result('done')")
    attempt, run = await served.begun("assistant")
    process.kill()
    with pytest.raises(AgentCrashedError, match="No runner answers") as caught:
        await attempt
    assert (caught.value.retryable, "septet runner" in caught.value.remedy) == (True, True)
    assert carriers(mark_of(run)) == []
    record = end_of(run)
    assert (record.cause, record.why) == ("lost", RESTARTED)
    assert served.runtime.runs.of("wo-1") == [run]
    runner.start()
    served.let_go()
    turn_result = await served.run_turn()
    assert (turn_result.outcome.text, turn_result.recovered_by, turn_result.agent_starts) == ("done", "resume", 2)
    assert served.returned == []


async def test_a_runner_that_was_replaced_unseen_is_known(served: Lab, runner: Runner) -> None:
    """The end of a runner costs the agent no try, even if another runner has replaced it unseen."""
    served.agent("init(); turn('m1'); wait_for('../go'); result('done')")
    for _ in range(3):
        process = runner.start()
        attempt = asyncio.ensure_future(served.run_turn())
        await served.said_anew("assistant")
        await dropped(attempt)
        process.kill()
        process.wait(ENDS_SECONDS)
    runner.start()
    served.let_go()
    turn_result = await served.run_turn()
    assert (turn_result.outcome.text, turn_result.recovered_by, turn_result.agent_starts) == ("done", "resume", 4)
    assert {run.record.because for run in served.runtime.runs.of("wo-1")[1:] if run.record} == {"interrupted"}


async def test_what_a_killed_supervisor_leaves_is_killed_by_the_runner(served: Lab, runner: Runner) -> None:
    """The runner kills escaped tools, which are its children, before the session is resumed."""
    runner.start()
    served.agent(ESCAPES)
    attempt, run = await served.begun("assistant")
    await wait_until(lambda: naming(served.worktree / "left"))
    os.kill(supervisor_of(run), signal.SIGKILL)
    turn_result = await attempt
    assert (turn_result.outcome.text, turn_result.recovered_by) == ("done", "resume")
    assert (carriers(mark_of(run)), naming(served.worktree / "left")) == ([], [])
    record = end_of(run)
    assert (record.cause, record.why) == ("lost", "")


async def test_a_runner_works_on_when_its_files_are_gone(served: Lab, runner: Runner, tmp_path: Path) -> None:
    """A runner imports all that it needs at its start, so that an upgrade of its files costs no agent."""
    served.warm_agent("result(heard)")
    runner.packages = copy_packages(tmp_path / "packages")
    process = runner.start()
    await asyncio.to_thread(await_sweep, runner.folder)  # the runner runs when it answers
    assert any(str(runner.packages) in word for word in psutil.Process(process.pid).cmdline())
    shutil.rmtree(runner.packages)
    first = await served.run_turn(served.warm_turn(1))
    second = await served.run_turn(served.warm_turn(2, first.outcome.session_id))
    assert (second.outcome.text, second.recovered_by) == ("Turn 1.;Turn 2.;", None)
    served.agent("init(); result('done')")
    assert (await served.run_turn()).outcome.text == "done"


async def test_a_runner_that_is_told_to_end_lets_its_agents_end_in_good_order(served: Lab, runner: Runner) -> None:
    """SIGTERM of the runner ends its agents in order, keeps their records, and costs none of their tries."""
    process = runner.start()
    served.agent("init(); turn('m1'); wait_for('../go'); result('done')")
    attempt, run = await served.begun("assistant")
    process.terminate()
    assert await asyncio.to_thread(process.wait, ENDS_SECONDS) == 0
    with pytest.raises(AgentCrashedError, match="told to stop"):
        await attempt
    record = end_of(run)
    assert (record.cause, record.signal) == ("terminated", signal.SIGTERM)
    runner.start()
    served.let_go()
    turn_result = await served.run_turn()
    assert (turn_result.outcome.text, turn_result.recovered_by) == ("done", "resume")


async def test_a_runner_keeps_no_zombie_and_agents_none_of_its_descriptors(served: Lab, runner: Runner) -> None:
    """The runner reaps its children, and an agent inherits no file of the runner."""
    process = psutil.Process(runner.start().pid)
    served.agent(
        "init(); result(' '.join(os.readlink('/proc/self/fd/%s' % name) for name in '0123' "
        "if os.path.exists('/proc/self/fd/%s' % name)))"
    )
    turn_result = await served.run_turn()
    assert str(runner.folder) not in (turn_result.outcome.text or str(runner.folder))
    await wait_until(lambda: process.children() == [])


@pytest.mark.parametrize("backlog", [0, 8])
def test_a_runner_that_stands_still_is_not_waited_for_without_end(tmp_path: Path, backlog: int) -> None:
    """A stopped runner fills its backlog and then accepts no connection; both give a retryable error."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "control.sock"))
        listener.listen(backlog)
        for _ in range(3):
            with pytest.raises(AgentCrashedError, match="runner") as caught:
                await_sweep(tmp_path, within_seconds=0.05)
            assert caught.value.retryable


def test_what_a_runner_left_that_is_gone_went_with_it(tmp_path: Path) -> None:
    """If no runner ran, or the runner was killed, there is no sweep to wait for."""
    await_sweep(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "control.sock"))
    await_sweep(tmp_path)


async def test_a_long_path_is_no_hindrance_for_a_runner(lab: Lab, tmp_path: Path) -> None:
    """The path of the state directory may be longer than a socket's address."""
    runner = Runner(tmp_path / ("long-" * 30) / "state")
    runner.state.parent.mkdir()
    try:
        runner.start()
        lab.runtime = replace(lab.runtime, supervisors=Supervisors(runner=runner.folder))
        lab.agent("init(); result('done')")
        assert (await lab.run_turn()).outcome.text == "done"
    finally:
        runner.end()


async def test_a_runner_lets_be_written_what_a_killed_supervisors_agent_had_printed(
    served: Lab, runner: Runner
) -> None:
    """The runner kills what the supervisor left, except the recorder, so that the result counts."""
    runner.start()
    served.agent("init(); wait_for('../go'); result('done'); open('../printed', 'w').close(); time.sleep(300)")
    attempt, run = await served.begun("system/init")
    supervisor = psutil.Process(supervisor_of(run))
    recorder = next(child for child in supervisor.children() if is_recorder(child.pid))
    recorder.suspend()
    served.let_go()
    await wait_until((served.root / "printed").exists)
    supervisor.kill()
    recorder.resume()
    turn_result = await attempt
    assert (turn_result.outcome.text, turn_result.recovered_by, turn_result.agent_starts) == ("done", "read", 1)


@pytest.mark.needs("root")
def test_another_user_gets_no_supervisor_of_a_runner() -> None:
    """The modes of state directory and socket keep other users out; a user with access could start programs."""
    folder = Path(tempfile.mkdtemp(prefix="septet-"))
    folder.chmod(0o755)
    runner = Runner(folder / "state")
    answers = []
    try:
        runner.start()
        place = runner.folder / "control.sock"
        argv = [sys.executable, "-IS", "-c", CONNECTS, str(place)]
        for opened in ((), (runner.state, runner.folder), (place,)):
            for each in opened:
                each.chmod(0o777)
            told = subprocess.run(argv, capture_output=True, text=True, check=True, cwd="/", timeout=ENDS_SECONDS)
            answers.append(told.stdout.strip())
    finally:
        runner.end()
        shutil.rmtree(folder)
    assert answers == ["PermissionError", "PermissionError", "let in"]
