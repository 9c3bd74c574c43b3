"""A host on which supervisors do not start."""

from dataclasses import replace

import psutil
import pytest
from fakes.agent_lab import Lab
from fakes.waiting import until, wait_until

from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.supervisor import PROGRAM
from septet.errors import AgentCrashedError

pytestmark = pytest.mark.law


async def test_supervisors_that_end_at_once_are_not_started_for_ever(lab: Lab) -> None:
    """After three supervisors that ended at once, a retryable error ends the attempt, so that no disk fills up."""
    python = lab.root / "no-python"
    python.write_text("#!/bin/sh\nhead -c 1 > /dev/null\n", encoding="utf-8")
    python.chmod(0o755)
    supervisors = Supervisors(python=str(python))
    lab.agent("init()\nresult('/bug')\n")
    lab.runtime = replace(lab.runtime, supervisors=supervisors)
    try:
        with pytest.raises(AgentCrashedError, match="before it started the agent, 3 times") as caught:
            await lab.run_turn()
    finally:
        supervisors.close()
    assert (caught.value.retryable, caught.value.retry_after_seconds) == (True, 30.0)
    assert len(lab.runtime.runs.of("wo-1")) == 3
    assert lab.journal == []


async def test_a_start_that_finds_no_supervisor_leaves_no_run(lab: Lab) -> None:
    """A start without a supervisor leaves no run, however often the attempt is repeated."""
    lab.agent("init(); result('done')")
    lab.runtime = replace(lab.runtime, supervisors=Supervisors(python=str(lab.root / "no-python")))
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            await lab.run_turn()
    assert lab.runtime.runs.of("wo-1") == []


async def test_a_supervisor_that_was_killed_while_it_waited_costs_no_start(lab: Lab) -> None:
    """The end of the waiting supervisor is noticed before it gets an order, and another one is forked."""
    lab.agent("init(); result('done')")
    _, waiting = _prepared(lab)
    waiting.kill()
    await wait_until(lambda: not waiting.is_running())
    assert (await lab.run_turn()).outcome.text == "done"
    assert len(lab.runtime.runs.of("wo-1")) == 1


async def test_the_supervisor_that_waits_goes_with_its_worker(lab: Lab) -> None:
    """The waiting supervisor ends with its worker."""
    _, waiting = _prepared(lab)
    lab.runtime.supervisors.close()
    await wait_until(lambda: not waiting.is_running())


def _prepared(lab: Lab) -> tuple[psutil.Process, psutil.Process]:
    """Prepare a supervisor; return the fork server and the waiting supervisor."""
    before = psutil.Process().children()
    lab.runtime.supervisors.prepare()

    def begun() -> list[psutil.Process]:
        """Return the fork server; a process that has just started has no command line yet."""
        children = [child for child in psutil.Process().children() if child not in before]
        return [child for child in children if PROGRAM in " ".join(child.cmdline())]

    (fork_server,) = until(begun)
    return fork_server, until(fork_server.children)[0]


async def test_the_process_that_forks_supervisors_is_replaced_when_it_was_killed(lab: Lab) -> None:
    """The end of the fork server ends no supervisor, and the next agent gets a new one."""
    lab.agent("init(); wait_for('../go'); result('done')")
    fork_server, _ = _prepared(lab)
    attempt, _ = await lab.begun("system/init")
    fork_server.kill()
    fork_server.wait()
    lab.let_go()
    assert (await attempt).outcome.text == "done"
    assert (await lab.run_turn(lab.request(activity_id="6"))).outcome.text == "done"
    assert lab.journal == ["start new", "start new"]
