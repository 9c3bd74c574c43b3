"""Preparation of a round on a pull request."""

import asyncio
from pathlib import Path

import pytest
from fakes.lock_holders import held_elsewhere
from fakes.step_lab import StepLab
from fakes.waiting import wait_until
from temporalio.exceptions import ApplicationError

from septet.contracts.names import Step
from septet.contracts.rework import Rework


async def test_a_worker_that_waits_for_another_ones_attempt_goes_on_beside_it(lab: StepLab) -> None:
    """The worker's event loop runs while another process holds the lock of the file of attempts."""
    await lab.open()
    attempts = lab.parts.host.state.runs / "wo-1" / "attempts.jsonl"
    attempts.parent.mkdir()
    call = lab.call(Step.IMPLEMENT_PLAN, rework=Rework(round=1, url="file:///nowhere.git/pull/1"))
    with held_elsewhere(attempts) as holder:
        preparing = asyncio.create_task(lab.prepare_rework(call))
        await wait_until(lambda: _is_waited_for(attempts))
        assert holder.poll() is None
    with pytest.raises(ApplicationError, match="cannot follow pull requests"):
        await preparing


def _is_waited_for(path: Path) -> bool:
    """Return whether this process has the file open, as while it waits for the lock."""
    return any(link.resolve() == path.resolve() for link in Path("/proc/self/fd").iterdir() if link.exists())
