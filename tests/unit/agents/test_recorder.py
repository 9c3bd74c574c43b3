"""An agent's output reaches the disk even if supervisor or recorder dies, and the prompt cannot be changed."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from fakes.agent_lab import Lab, supervisor_of
from fakes.waiting import wait_until

from septet.agents.runs.folders import Run
from septet.agents.supervisor.recorder import is_recorder, open_prompt

pytestmark = [pytest.mark.law, pytest.mark.needs("Linux")]

PRINTS = "init(); wait_for('../go'); result('done'); open('../printed', 'w').close(); time.sleep(300)"
ENDS = "init(); wait_for('../go'); result('done')"


def recorder_of(run: Run) -> int:
    children = psutil.Process(supervisor_of(run)).children()
    return next((child.pid for child in children if is_recorder(child.pid)), 0)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGCONT)


async def test_a_result_counts_that_came_while_the_supervisor_stood_still(lab: Lab) -> None:
    """The result is on disk while the supervisor is stopped, and counts after the supervisor is killed."""
    lab.agent(PRINTS)
    attempt, run = await lab.begun("system/init")
    supervisor = supervisor_of(run)
    with stopped(supervisor):
        lab.let_go()
        await wait_until(lambda: b"done" in run.stdout.read_bytes())
        os.kill(supervisor, signal.SIGKILL)
    turn_result = await attempt
    assert (turn_result.outcome.text, turn_result.recovered_by, turn_result.agent_starts) == ("done", "read", 1)


async def test_the_run_lives_until_all_is_written_that_a_killed_supervisors_agent_had_printed(lab: Lab) -> None:
    """The stopped recorder still writes the contents of the pipe after the supervisor has died."""
    lab.agent(PRINTS)
    attempt, run = await lab.begun("system/init")
    with stopped(recorder_of(run)):
        lab.let_go()
        await wait_until((lab.root / "printed").exists)
        os.kill(supervisor_of(run), signal.SIGKILL)
        assert (run.lives(), b"done" in run.stdout.read_bytes()) == (True, False)
    turn_result = await attempt
    assert (turn_result.outcome.text, turn_result.recovered_by, turn_result.agent_starts) == ("done", "read", 1)


async def test_a_killed_recorder_is_replaced(lab: Lab) -> None:
    """The agent continues, and its later output is recorded."""
    lab.agent(ENDS)
    attempt, run = await lab.begun("system/init")
    killed = recorder_of(run)
    os.kill(killed, signal.SIGKILL)
    assert await wait_until(lambda: recorder_of(run) not in {0, killed})
    lab.let_go()
    turn_result = await attempt
    assert (turn_result.outcome.text, turn_result.recovered_by, turn_result.agent_starts) == ("done", None, 1)


def test_a_prompt_can_be_read_and_not_written(tmp_path: Path) -> None:
    """A process that opens the prompt again by its descriptor can change neither its bytes nor its length."""
    (tmp_path / "prompt.md").write_bytes(b"what is asked")
    prompt = open_prompt(str(tmp_path / "prompt.md"))
    again = os.open(f"/proc/self/fd/{prompt}", os.O_RDWR)
    for change in (lambda: os.write(again, b"x"), lambda: os.ftruncate(again, 0), lambda: os.ftruncate(again, 99)):
        with pytest.raises(PermissionError):
            change()
    assert os.read(prompt, 100) == b"what is asked"
    os.close(again)
    os.close(prompt)
