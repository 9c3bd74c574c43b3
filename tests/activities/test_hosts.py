"""Activities by which one host takes a work order over from another."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fakes.repositories import Origin, git
from fakes.step_lab import BRANCH, FIXED, PLAN, StepLab, halted, settings_of
from pydantic import SecretStr
from temporalio.exceptions import ApplicationError

from septet.agents.guest.description import GuestFiles
from septet.agents.runs.lease import Lease
from septet.agents.runs.records import RunKey
from septet.agents.sandbox.connections import end_agent
from septet.contracts.names import Step, Verdict
from septet.contracts.workspace import MoveWorkspace
from septet.errors import SupersededError
from workers.registry import parts_of

HostOf = Callable[..., Any]
KEY = SecretStr("a passphrase that both hosts have")
_SPOILED = {"edits": {"src/app.py": FIXED}, "malformed": "prose"}


@pytest_asyncio.fixture
async def host_of(tmp_path: Path, origin: Origin) -> AsyncIterator[HostOf]:
    """Yield a function that makes a host; at the end all agents are stopped."""
    labs: list[StepLab] = []
    async with AsyncExitStack() as stack:

        async def make(name: str, **settings: Any) -> StepLab:
            (tmp_path / name).mkdir()
            remote = {"checkpoint_remote": str(tmp_path / "checkpoints")}
            own = settings_of(tmp_path / name).model_copy(update=remote | settings)
            lab = StepLab(tmp_path / name, origin, await stack.enter_async_context(parts_of(own)))
            labs.append(lab)
            return lab

        yield make
        for lab in labs:
            for run in lab.runs:
                await end_agent(run, "cancelled")


async def moved(lab: StepLab, to: StepLab, checkpoint: str) -> None:
    assert lab.workspace is not None
    move = MoveWorkspace(workspace=lab.workspace, checkpoint=checkpoint)
    to.workspace = await to._activity("move", to.parts.shared["move_workspace"], move)
    to.progress = lab.progress


@contextmanager
def hanging(folder: Path) -> Iterator[Path]:
    """Let pushes to the checkpoint remote hang during the block; yield the file that marks a waiting push."""
    (shelf,) = folder.iterdir()
    hook = shelf / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    wait = f"while ! [ -e '{folder}.go' ]; do sleep 0.05; done"
    hook.write_text(f"#!/bin/sh\ntouch '{folder}.pushing'\n{wait}\n", encoding="utf-8")
    hook.chmod(0o755)
    try:
        yield Path(f"{folder}.pushing")
    finally:
        Path(f"{folder}.go").touch()


async def test_a_cancel_does_not_wait_for_a_checkpoint_remote_that_hangs(host_of: HostOf, tmp_path: Path) -> None:
    """A cancel of the step ends the waiting push of its checkpoint."""
    lab = await host_of("a")
    await lab.open_to(Step.IMPLEMENT_PLAN)
    with hanging(tmp_path / "checkpoints") as pushing:
        work = partial(lab.running, lab.call(Step.FIND_PLAN_FILE))
        ended = await halted(work, pushing.exists, "cancel_requested")
        assert ended.result().verdict is Verdict.CANCELLED


async def test_the_host_itself_keeps_what_it_has(host_of: HostOf) -> None:
    """A move to the same host changes neither workspace nor files."""
    first = await host_of("a")
    await first.open_to(Step.IMPLEMENT_PLAN)
    await first.run(Step.CLASSIFY_ISSUE)
    first.write("src/half.py", "half done")
    before = first.workspace
    await moved(first, first, first.snapshots()[-1])
    assert first.workspace == before
    assert (first.worktree / "src" / "half.py").read_text() == "half done"


async def test_a_workspace_is_set_up_on_the_other_host_as_well(host_of: HostOf) -> None:
    """The other host runs set-up for files that no snapshot holds, and no step reports those files as changes."""
    first, second = await host_of("a", ignored_limit_mib=0), await host_of("b", ignored_limit_mib=0)
    script = "mkdir -p node_modules build; echo code > node_modules/a.js; echo made > build/made.txt\n"
    settings = 'setup = ["sh install.sh"]\n'
    first.origin.push({".septet/septet.toml": settings, "install.sh": script, ".gitignore": "node_modules\n"})
    await first.open_to(Step.IMPLEMENT_PLAN)
    await first.run(Step.CLASSIFY_ISSUE)
    checkpoint = first.snapshots()[-1]
    shutil.rmtree(first.parts.host.state.root)

    await moved(first, second, checkpoint)

    assert (second.worktree / "node_modules" / "a.js").read_text(encoding="utf-8") == "code\n"
    assert (second.worktree / "build" / "made.txt").exists()
    second.scenario(implement_plan={"edits": {"src/app.py": FIXED}})
    result = await second.running(second.call(Step.IMPLEMENT_PLAN, starts_from=checkpoint))
    assert (result.verdict, result.warnings) == (Verdict.DONE, ())
    assert {change.path for change in result.files_changed} == {"src/app.py", PLAN}


async def test_the_finalizer_goes_on_with_the_session_on_the_other_host(host_of: HostOf, tmp_path: Path) -> None:
    """With a key the sealed files of the session move too, so the same session answers on the other host."""
    first, second = await host_of("a", checkpoint_key=KEY), await host_of("b", checkpoint_key=KEY)
    await first.open_to(Step.IMPLEMENT_PLAN, _SPOILED)
    call = first.call(Step.IMPLEMENT_PLAN)
    unread = await first.running(call)
    assert (unread.verdict, unread.warnings) == (Verdict.UNPARSED, ())

    await moved(first, second, unread.checkpoint or "")
    there = call.model_copy(update={"workspace": second.workspace})
    done = await second.finalize(there, unread)

    assert (done.verdict, done.recovered_by) == (Verdict.DONE, "finalizer")
    assert (second.worktree / "src" / "app.py").read_text() == FIXED
    (remote,) = (tmp_path / "checkpoints").iterdir()
    tips = git(remote, "for-each-ref", "--format=%(objectname)").split()
    files = {
        name
        for tip in git(remote, "rev-list", *tips).split()
        for name in git(remote, "ls-tree", "--name-only", tip).split()
    }
    assert "session" in files
    assert git(remote, "grep", "--text", "-l", str(unread.session_id), *tips, "--", "session", check=False) == ""


@pytest.mark.parametrize(
    "settings",
    [{"checkpoint_remote": "origin", "checkpoint_key": KEY}, {"checkpoint_key": None}],
    ids=["origin", "no key"],
)
async def test_no_session_leaves_its_host_without_a_key_or_for_the_origin(
    host_of: HostOf, origin: Origin, tmp_path: Path, settings: dict[str, Any]
) -> None:
    """A remote has no session without a key, and the origin never has a session."""
    first = await host_of("a", **settings)
    await first.open_to(Step.IMPLEMENT_PLAN, _SPOILED)
    await first.run(Step.IMPLEMENT_PLAN)
    folder = origin.bare if "checkpoint_remote" in settings else next((tmp_path / "checkpoints").iterdir())
    (ref,) = git(folder, "for-each-ref", "--format=%(refname)", "refs/septet/checkpoints").split()
    assert "session" not in git(folder, "ls-tree", "--name-only", ref).split()


async def test_no_confined_agent_sees_what_is_kept_elsewhere(host_of: HostOf, tmp_path: Path) -> None:
    """A sandbox hides a folder of checkpoints from agents, also a folder made after the worker's start."""
    sandbox = (await host_of("a")).parts.host.sandbox
    remote = tmp_path / "checkpoints"
    remote.mkdir(exist_ok=True)
    (remote / "app.git").mkdir()
    listed = sandbox.run((shutil.which("ls") or "ls", str(remote)), GuestFiles(tmp_path), {}, 30.0)
    assert (listed.stdout == b"app.git\n") is not sandbox.confines


async def test_a_remote_that_cannot_be_written_is_a_warning_on_the_step(host_of: HostOf, tmp_path: Path) -> None:
    """The step is done, and its warning says that the remote has no copy of the checkpoint."""
    (tmp_path / "checkpoints").write_text("in the way")
    first = await host_of("a")
    await first.open_to(Step.IMPLEMENT_PLAN)
    result = await first.run(Step.IMPLEMENT_PLAN)
    assert result.verdict is Verdict.DONE
    assert "not copied to the checkpoint remote" in result.warnings[-1]


@pytest.mark.law
async def test_a_host_that_was_left_pushes_no_branch_and_opens_no_pull_request(
    host_of: HostOf, origin: Origin
) -> None:
    """The old host's last step is refused before the push, and the new host opens the pull request."""
    first, second = await host_of("a"), await host_of("b")
    await first.open_to(Step.CREATE_PULL_REQUEST)
    await first.run(Step.CLASSIFY_ISSUE)
    await moved(first, second, first.snapshots()[-1])
    with pytest.raises(ApplicationError, match="has moved to host"):
        await first.run(Step.CREATE_PULL_REQUEST)
    assert origin.sha(BRANCH) == ""
    result = await second.run(Step.CREATE_PULL_REQUEST)
    assert result.verdict is Verdict.DONE
    assert origin.sha(BRANCH) == second.progress.commit_sha


async def test_the_host_that_opened_the_workspace_last_holds_the_work_order(
    host_of: HostOf, origin: Origin
) -> None:
    """The host that opened the workspace last works and pushes; the earlier host is refused."""
    first, second = await host_of("a"), await host_of("b")
    await first.open_to(Step.CREATE_PULL_REQUEST)
    second.begun["run-1", "open"] = 1
    await second.open_to(Step.CREATE_PULL_REQUEST)
    plan = await second.run(Step.CLASSIFY_ISSUE)
    assert (plan.verdict, plan.warnings) == (Verdict.DONE, ())
    result = await second.run(Step.CREATE_PULL_REQUEST)
    assert result.verdict is Verdict.DONE
    assert origin.sha(BRANCH) == second.progress.commit_sha
    with pytest.raises(ApplicationError, match="has moved to host"):
        await first.run(Step.CREATE_PULL_REQUEST)


@pytest.mark.law
async def test_a_late_attempt_of_an_earlier_time_on_the_host_writes_nothing(host_of: HostOf) -> None:
    """After the work order's return, an attempt from before the move is superseded and writes nothing."""
    first, second = await host_of("a"), await host_of("b")
    await first.open_to(Step.IMPLEMENT_PLAN)
    await first.run(Step.CLASSIFY_ISSUE)
    checkpoint = first.snapshots()[-1]
    stopped = Lease.take(first.parts.host.runs, RunKey("wo-1", "run-1", "implement_plan-1"))
    await moved(first, second, checkpoint)
    await moved(second, first, checkpoint)
    with pytest.raises(SupersededError):
        stopped.check()


async def test_a_move_to_an_earlier_checkpoint_takes_the_worktree_there(host_of: HostOf) -> None:
    """A retry from a step before the move puts the new host's worktree at the earlier checkpoint."""
    first, second = await host_of("a"), await host_of("b")
    await first.open_to(Step.IMPLEMENT_PLAN)
    await first.run(Step.CLASSIFY_ISSUE)
    earlier, later = first.snapshots()[0], first.snapshots()[-1]
    await moved(first, second, later)
    assert git(second.worktree, "branch", "--show-current") == BRANCH
    await moved(first, second, earlier)
    assert git(second.worktree, "branch", "--show-current") == "main"


async def test_a_host_without_a_remote_of_its_own_takes_nothing_over(host_of: HostOf) -> None:
    """A host without a checkpoint remote refuses the move, and the remedy names `septet host-gone`."""
    first, second = await host_of("a"), await host_of("b", checkpoint_remote=None)
    await first.open()
    with pytest.raises(ApplicationError, match="has no checkpoint remote") as refused:
        await moved(first, second, first.snapshots()[-1])
    assert f"run `septet host-gone {first.parts.host.id}` again" in refused.value.details[0].remedy


async def test_a_worker_without_its_state_directory_is_no_host(host_of: HostOf) -> None:
    """The probe returns the id in the state directory, and fails if the directory is missing."""
    first = await host_of("a")
    probe = first.parts.control["probe_host"]

    async def probe_again(_: None) -> str:
        answer: str = await probe()
        return answer

    assert await first._activity("probe", probe_again, None) == first.parts.host.id
    shutil.rmtree(first.parts.host.state.root)
    with pytest.raises(ApplicationError, match="is no longer the state directory"):
        await first._activity("probe", probe_again, None)
