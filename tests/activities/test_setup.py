"""A repository's set-up on a real host: once in each workspace, before its first agent, and no agent's work."""

import asyncio
import sys

import pytest
from fakes.processes import processes_with
from fakes.repositories import git
from fakes.step_lab import TITLE, StepLab
from fakes.taken_values import taken_values
from fakes.waiting import wait_until
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from septet.contracts.names import Step, Verdict
from septet.git.snapshots.destroy import remove_workspace
from septet.telemetry.metrics import PROXY_REFUSALS

_SETTINGS = ".septet/septet.toml"
_INSTALL = "mkdir -p node_modules/lib build; echo ran >> ran.log; echo made > build/[made].txt; echo code > node_modules/lib/a.js\n"


def _ask_for(lab: StepLab, script: str, settings: str = 'setup = ["sh install.sh"]\n') -> None:
    """Have the repository ask for a set-up that runs a script of its own."""
    lab.origin.push({_SETTINGS: settings, "install.sh": script, ".gitignore": "*.log\nnode_modules\n"})


def _records(lab: StepLab) -> list[str]:
    folder = lab.parts.host.state.runs / "wo-1" / "setup"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


async def _refusal(lab: StepLab) -> tuple[ApplicationError, str]:
    """Open the workspace, and return the failure with its remedy."""
    with pytest.raises(ApplicationError) as failed:
        await lab.open()
    return failed.value, failed.value.details[0].remedy


async def test_set_up_runs_once_before_the_first_agent(lab: StepLab) -> None:
    """What it makes is there for agents, opening again does not repeat it, and its record lies beside the runs."""
    _ask_for(lab, _INSTALL)
    opened = await lab.open()
    assert (lab.worktree / "node_modules" / "lib" / "a.js").read_text(encoding="utf-8") == "code\n"
    assert await lab.open() == opened
    assert (lab.worktree / "ran.log").read_text(encoding="utf-8") == "ran\n"
    assert (opened.checkpoint, lab.runs, _records(lab)) == (lab.snapshots()[-1], [], ["1"])
    lab.scenario()
    done = await lab.run(Step.CLASSIFY_ISSUE)
    assert (done.verdict, done.warnings, done.rescues) == (Verdict.DONE, (), ())
    assert (lab.worktree / "ran.log").read_text(encoding="utf-8") == "ran\n"


async def test_a_workspace_that_was_removed_is_set_up_again_when_it_is_opened_again(lab: StepLab) -> None:
    """As when a work order is retried from its beginning after the janitor has been there."""
    _ask_for(lab, _INSTALL)
    await lab.open()
    remove_workspace(lab.place, lab.parts.host.snapshots.options("a test"), accept_loss=True)
    await lab.open()
    assert (lab.worktree / "node_modules" / "lib" / "a.js").exists()
    assert (lab.worktree / "ran.log").read_text(encoding="utf-8") == "ran\n"


async def test_a_repository_without_set_up_has_no_trace_of_it(lab: StepLab) -> None:
    """No attempt, no further snapshot and no record."""
    opened = await lab.open()
    assert ([opened.checkpoint], _records(lab)) == (lab.snapshots(), [])


async def test_what_set_up_makes_is_not_committed_and_what_an_agent_puts_beside_it_is(lab: StepLab) -> None:
    """Files that git does not ignore stay in the workspace, and out of the commit; the agent's own are in it."""
    _ask_for(lab, _INSTALL)
    await lab.open_to(Step.CREATE_COMMIT)
    assert git(lab.worktree, "status", "--porcelain", "--", "build") == ""
    lab.write("build/own.txt", "the agent's\n")
    lab.parts.host.snapshots.take(lab.place, "checkpoint", "the agent's work")
    lab.scenario(create_commit={"answer": {"commit_message": "bug: totals"}})
    done = await lab.run(Step.CREATE_COMMIT)
    assert (done.verdict, done.warnings) == (Verdict.DONE, ())
    committed = git(lab.worktree, "show", "--name-only", "--format=", "HEAD").split()
    assert {"build/own.txt", "src/app.py"} <= set(committed)
    assert not {"build/[made].txt", "ran.log"} & set(committed)
    assert (lab.worktree / "build" / "[made].txt").exists()
    assert git(lab.worktree, "status", "--porcelain") == ""


async def test_an_agent_that_begins_anew_finds_what_set_up_made(lab: StepLab) -> None:
    """The first step's checkpoint is after set-up: a return to it brings its files back, without running it again."""
    _ask_for(lab, _INSTALL)
    opened = await lab.open()
    (lab.worktree / "node_modules" / "lib" / "a.js").unlink()
    (lab.worktree / "build" / "[made].txt").write_text("spoilt\n", encoding="utf-8")
    lab.parts.host.snapshots.return_to(lab.place, opened.checkpoint, "a test", "classify_issue")
    assert (lab.worktree / "node_modules" / "lib" / "a.js").exists()
    assert (lab.worktree / "build" / "[made].txt").read_text(encoding="utf-8") == "made\n"
    assert git(lab.worktree, "status", "--porcelain") == ""


async def test_a_set_up_command_that_fails_is_told_with_its_last_words_and_a_remedy(lab: StepLab) -> None:
    """The opening fails for good, names command, exit code and remedy, and runs none of those after it."""
    settings = 'setup = ["sh install.sh", "touch later.log"]\n'
    _ask_for(lab, "echo first; echo no such package >&2; exit 7\n", settings)
    error, remedy = await _refusal(lab)
    assert (error.type, error.non_retryable) == ("Setup", True)
    assert error.message == "Set-up command `sh install.sh` failed (exit code 7):\nfirst\nno such package"
    assert ".septet/septet.toml" in remedy
    assert "`septet retry`" in remedy
    assert error.details[0].issue_title == TITLE
    assert not (lab.worktree / "later.log").exists()
    assert lab.runs == []


async def test_set_up_that_failed_runs_again_from_the_workspace_as_it_was(lab: StepLab) -> None:
    """A retry finds nothing of the first try in its way; what that left is in a rescue."""
    _ask_for(lab, "[ ! -e half.log ] && [ ! -e half.txt ] || exit 9\ntouch half.log half.txt\nexit 1\n")
    for _ in range(2):
        error, _remedy = await _refusal(lab)
        assert "(exit code 1)" in error.message
    assert (_records(lab), len(lab.snapshots("rescue"))) == (["1", "2"], 1)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo changed > src/app.py\n", "changed files of the repository: src/app.py."),
        ("rm -r src\n", "changed files of the repository: src/app.py."),
        ("chmod +x src/app.py\n", "changed files of the repository: src/app.py."),
        ("echo new > new.txt; git add new.txt\n", "changed files of the repository: new.txt."),
        ("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m mine\n", "moved HEAD"),
        ("for n in $(seq 1001); do touch new-$n; done\n", "leaves 1001 files that git does not ignore: new-1,"),
    ],
)
async def test_what_would_pass_for_an_agents_work_is_refused(lab: StepLab, script: str, words: str) -> None:
    """Set-up that changes files of the repository fails the opening, and the message names them."""
    _ask_for(lab, script)
    error, remedy = await _refusal(lab)
    assert (error.type, error.non_retryable) == ("Setup", True)
    assert words in error.message
    assert remedy


async def test_set_up_has_a_time_for_all_its_commands(lab: StepLab) -> None:
    """The one that is running when it is over is ended, and named."""
    _ask_for(lab, "sleep 299.75\n", 'setup = ["true", "sh install.sh"]\n[limits]\nsetup_seconds = 1\n')
    error, _ = await _refusal(lab)
    assert error.message == (
        "Set-up command `sh install.sh` took longer than the 1 s that set-up has (`setup_seconds`)."
    )


@pytest.mark.needs("bubblewrap")
async def test_a_host_that_its_sandbox_refuses_set_up_is_named_in_the_remedy_and_counted(lab: StepLab) -> None:
    """So a registry that the worker does not let through is found without a look at logs."""
    ask = "import urllib.request; urllib.request.urlopen('https://index.example/simple', timeout=20)"
    lab.origin.push({_SETTINGS: f"setup = [['{sys.executable}', '-IS', '-c', \"{ask}\"]]\n"})
    with taken_values(PROXY_REFUSALS) as taken:
        _, remedy = await _refusal(lab)
    assert taken == [(1, {"step": "setup", "agent": "set-up"})]
    assert remedy.startswith(
        "Its sandbox refused index.example:443. Start the worker (`septet up`) again with them added to SEPTET_SETUP_HOSTS"
    )


async def test_a_cancelled_opening_ends_set_up_and_the_next_one_begins_anew(lab: StepLab) -> None:
    """Nobody waits for a command that hangs; what it left is put away before it runs again."""
    _ask_for(lab, "[ ! -e half.txt ] || exit 9\ntouch half.txt\nexec sleep 299.125\n")
    for _ in range(2):
        environment = ActivityEnvironment()
        opening = asyncio.ensure_future(lab.open(within=environment))
        await wait_until(lambda: processes_with("299.125"))
        environment.cancel(ActivityCancellationDetails(cancel_requested=True))
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(opening, 60)
        assert processes_with("299.125") == []
    assert len(lab.snapshots("rescue")) == 1
