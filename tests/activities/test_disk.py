"""A disk that is full, without inodes or read-only during a step: no work is lost, and the step continues later."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fakes.repositories import Origin
from fakes.small_disk import SmallDisk, small_disk
from fakes.step_lab import IMPLEMENTED, StepLab, settings_of, step_lab

from septet.agents.sandbox.connections import end_agent
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepResult
from septet.git.vault.vault import find, vault_at, verify

pytestmark = [pytest.mark.small_disk, pytest.mark.law]

DONE = f"answer({IMPLEMENTED!r})"
FILL = """
def fill():
    ballast, block = open({ballast!r}, "ab", buffering=0), bytes(65536)
    while block:
        try:
            ballast.write(block)
        except OSError:
            block = block[: len(block) // 2]

"""


@asynccontextmanager
async def on_small_disk(
    root: Path, origin: Origin, *, wait_seconds: float = 3600.0
) -> AsyncIterator[tuple[StepLab, SmallDisk]]:
    """Yield a lab whose state lies on a small disk, with its work order ready to be implemented."""
    with small_disk(root / "state") as disk:
        async with step_lab(root, origin, settings_of(root, disk_wait_seconds=wait_seconds)) as lab:
            await lab.open_to(Step.IMPLEMENT_PLAN)
            yield lab, disk
            for run in lab.runs:
                await end_agent(run, "cancelled")


def _ballast(lab: StepLab) -> Path:
    """Return the file that fills the disk, in a folder that the agent may write and no snapshot reads."""
    return lab.worktree / ".git" / "ballast"


def assert_done(lab: StepLab, result: StepResult) -> None:
    assert result.verdict is Verdict.DONE
    assert result.checkpoint is not None
    verify(vault_at(lab.place), find(vault_at(lab.place), result.checkpoint))


async def test_an_agent_that_meets_a_full_disk_goes_on_when_there_is_room(tmp_path: Path, origin: Origin) -> None:
    """The error names disk and remedy, the agent's files stay, and its session continues once the disk has room."""
    async with on_small_disk(tmp_path, origin) as (lab, disk):
        lab.agent(
            FILL.format(ballast=str(_ballast(lab)))
            + f"""
if not os.path.exists("src/half.py"):
    init()
    turn('m1')
    write("src/half.py", "half")
    fill()
    with open("src/more.py", "w") as more:
        more.write("x" * 100_000)
{DONE}
"""
        )
        error = await lab.failing(lab.call(Step.IMPLEMENT_PLAN))
        assert (error.type, error.non_retryable) == ("DiskFull", False)
        assert str(disk.path) in error.message
        assert "Make room" in error.details[0].remedy
        assert (lab.worktree / "src/half.py").read_text() == "half"
        assert len(lab.runs) == 1, "a try on a full disk leaves nothing"
        _ballast(lab).unlink()
        result = await lab.run(Step.IMPLEMENT_PLAN)
        assert_done(lab, result)
        assert (result.recovered_by, result.agent_starts) == ("resume", 2)
        assert (lab.worktree / "src/half.py").read_text() == "half"


async def test_work_that_is_done_on_a_full_disk_is_paid_once(tmp_path: Path, origin: Origin) -> None:
    """An agent whose work leaves no room for a checkpoint is not started again; the next attempt takes the checkpoint."""
    async with on_small_disk(tmp_path, origin) as (lab, _):
        ballast = str(_ballast(lab))
        lab.agent(
            FILL.format(ballast=ballast)
            + f"""
write("src/app.py", os.urandom(400_000).hex())
fill()
os.truncate({ballast!r}, os.path.getsize({ballast!r}) - 131072)
{DONE}
"""
        )
        error = await lab.failing(lab.call(Step.IMPLEMENT_PLAN))
        assert (error.type, error.non_retryable) == ("DiskFull", False)
        _ballast(lab).unlink()
        result = await lab.run(Step.IMPLEMENT_PLAN)
        assert_done(lab, result)
        assert (result.recovered_by, result.agent_starts) == ("read", 1)


async def test_a_step_without_inodes_names_them(tmp_path: Path, origin: Origin) -> None:
    """If no inodes are free, the error says so, though bytes are free."""
    async with on_small_disk(tmp_path, origin) as (lab, disk):
        disk.use_up_inodes()
        error = await lab.failing(lab.call(Step.IMPLEMENT_PLAN))
        assert error.type == "DiskFull"
        assert "no inodes are free" in error.message
        disk.free()
        assert_done(lab, await lab.run(Step.IMPLEMENT_PLAN))


async def test_a_read_only_disk_is_named(tmp_path: Path, origin: Origin) -> None:
    """The error names the read-only disk, and is final after a few tries; on a writable disk the step passes."""
    async with on_small_disk(tmp_path, origin) as (lab, disk):
        lab.write("src/half.py", "half")
        disk.make_read_only()
        error = await lab.failing(lab.call(Step.IMPLEMENT_PLAN))
        assert (error.type, error.non_retryable) == ("DiskReadOnly", False)
        error = await lab.failing(lab.call(Step.IMPLEMENT_PLAN), attempt=3)
        assert (error.type, error.non_retryable) == ("DiskReadOnly", True)
        assert "mount it writable" in error.details[0].remedy
        disk.make_writable()
        assert (lab.worktree / "src/half.py").read_text() == "half"
        assert_done(lab, await lab.run(Step.IMPLEMENT_PLAN))


async def test_no_workspace_is_opened_on_a_full_disk(tmp_path: Path, origin: Origin) -> None:
    """On a full disk the opening fails and is tried again; it passes once the disk has room."""
    with small_disk(tmp_path / "state") as disk:
        async with step_lab(tmp_path, origin, settings_of(tmp_path)) as lab:
            disk.fill()
            error = await lab.refused()
            assert (error.type, error.non_retryable) == ("DiskFull", False)
            disk.free()
            assert (await lab.open()).checkpoint == "wo-1/0000-base"
