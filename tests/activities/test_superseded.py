"""Two attempts at one step, and a cancel during an effect: one attempt writes, and nothing follows a cancel."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from fakes.lock_holders import held_elsewhere
from fakes.repositories import Origin, git
from fakes.step_lab import BRANCH, StepLab, halted
from fakes.waiting import wait_until
from temporalio.exceptions import ApplicationError

from septet.contracts.names import Step, Verdict
from septet.contracts.rework import Rework

pytestmark = pytest.mark.law


def slow_remote(origin: Origin, root: Path) -> Path:
    """Let each push to the origin create `pushing` and wait for the file `go`; return `go`."""
    hook = origin.bare / "hooks" / "pre-receive"
    hook.write_text(
        f"#!/bin/sh\ntouch '{root}/pushing'\nfor n in $(seq 600); do [ -e '{root}/go' ] && exit; sleep 0.05; done\nexit 1\n",
        encoding="utf-8",
    )
    hook.chmod(0o755)
    return root / "go"


@pytest.mark.parametrize("step", [Step.GENERATE_BRANCH, Step.CREATE_COMMIT, Step.CREATE_PULL_REQUEST])
async def test_a_superseded_attempt_changes_nothing(lab: StepLab, step: Step) -> None:
    """Of two attempts only the later makes branch, commit, push and pull request."""
    await lab.open_to(step)
    lab.scenario(**{step.value: {"wait_for": str(lab.root / "agent may end")}})
    call = lab.call(step)
    earlier = asyncio.ensure_future(lab.running(call))
    await wait_until(lambda: lab.runs and lab.runs[0].stdout.exists())
    later = asyncio.ensure_future(lab.running(call))
    await wait_until(lambda: lab.attempts == 2)
    (lab.root / "agent may end").touch()
    with pytest.raises(ApplicationError) as refused:
        await earlier
    assert (refused.value.type, refused.value.non_retryable) == ("Superseded", False)
    done = await later
    assert done.verdict is Verdict.DONE
    assert len(lab.runs) == 1
    if step is Step.CREATE_COMMIT:
        assert git(lab.worktree, "rev-list", "--count", f"{lab.place.base_sha}..HEAD") == "1"
    if step is Step.CREATE_PULL_REQUEST:
        assert len(lab.pull_requests) == 1


async def test_an_attempt_that_is_superseded_while_it_pushes_opens_no_pull_request(lab: StepLab) -> None:
    """The later attempt waits for the earlier attempt's push, and opens the one pull request."""
    go = slow_remote(lab.origin, lab.root)
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    call = lab.call(Step.CREATE_PULL_REQUEST)
    earlier = asyncio.ensure_future(lab.running(call))
    await wait_until((lab.root / "pushing").exists)
    later = asyncio.ensure_future(lab.running(call))
    await wait_until(lambda: lab.attempts == 2)
    go.touch()
    with pytest.raises(ApplicationError, match="later attempt"):
        await earlier
    assert (await later).verdict is Verdict.DONE
    assert len(lab.pull_requests) == 1
    assert len(lab.runs) == 1


async def test_a_cancel_ends_a_push_and_no_pull_request_follows(lab: StepLab) -> None:
    """A cancel ends the push: no branch and no pull request exist, and the work is in a rescue."""
    go = slow_remote(lab.origin, lab.root)
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    work = partial(lab.running, lab.call(Step.CREATE_PULL_REQUEST))
    cancelled = (await halted(work, (lab.root / "pushing").exists, "cancel_requested")).result()
    go.touch()
    assert cancelled.verdict is Verdict.CANCELLED
    assert [rescue.snapshot for rescue in cancelled.rescues] == lab.snapshots("rescue")
    assert lab.origin.sha(BRANCH) == ""
    assert lab.pull_requests == []


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
