"""A repository's set-up runs once in each workspace, before its first agent, and counts as no agent's work."""

import sys

import pytest
from fakes.processes import processes_with
from fakes.repositories import git
from fakes.step_lab import TITLE, StepLab, halted
from fakes.taken_values import taken_values

from septet.contracts.names import Step, Verdict
from septet.git.snapshots.destroy import remove_workspace
from septet.telemetry.metrics import PROXY_REFUSALS

_SETTINGS = ".septet/septet.toml"
_INSTALL = "mkdir -p node_modules/lib build; echo ran >> ran.log; echo made > build/[made].txt; echo code > node_modules/lib/a.js\n"


def _ask_for(lab: StepLab, script: str, settings: str = 'setup = ["sh install.sh"]\n') -> None:
    lab.origin.push({_SETTINGS: settings, "install.sh": script, ".gitignore": "*.log\nnode_modules\n"})


def _records(lab: StepLab) -> list[str]:
    folder = lab.parts.host.state.runs / "wo-1" / "setup"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


async def test_set_up_runs_once_before_the_first_agent(lab: StepLab) -> None:
    """Agents find the files of set-up, a second opening runs it no more, and its record lies with the runs."""
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
    """If the workspace was removed, as the janitor does, the next opening runs set-up again."""
    _ask_for(lab, _INSTALL)
    await lab.open()
    remove_workspace(lab.place, lab.parts.host.snapshots.options("a test"), accept_loss=True)
    await lab.open()
    assert (lab.worktree / "node_modules" / "lib" / "a.js").exists()
    assert (lab.worktree / "ran.log").read_text(encoding="utf-8") == "ran\n"


async def test_what_set_up_makes_is_not_committed_and_what_an_agent_puts_beside_it_is(lab: StepLab) -> None:
    """Files of set-up stay out of the commit, also if git does not ignore them; the agent's files are in it."""
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


async def test_a_set_up_command_that_fails_is_told_with_its_last_words_and_a_remedy(lab: StepLab) -> None:
    """The opening fails for good with command, exit code, output and remedy; later commands do not run."""
    settings = 'setup = ["sh install.sh", "touch later.log"]\n'
    _ask_for(lab, "echo first; echo no such package >&2; exit 7\n", settings)
    error = await lab.refused()
    assert (error.type, error.non_retryable) == ("Setup", True)
    assert error.message == "Set-up command `sh install.sh` failed (exit code 7):\nfirst\nno such package"
    assert ".septet/septet.toml" in error.details[0].remedy
    assert "`septet retry`" in error.details[0].remedy
    assert error.details[0].issue_title == TITLE
    assert not (lab.worktree / "later.log").exists()
    assert lab.runs == []


async def test_set_up_that_failed_runs_again_from_the_workspace_as_it_was(lab: StepLab) -> None:
    """A retry finds no file of the failed set-up, whose remains are in a rescue."""
    _ask_for(lab, "[ ! -e half.log ] && [ ! -e half.txt ] || exit 9\ntouch half.log half.txt\nexit 1\n")
    for _ in range(2):
        assert "(exit code 1)" in (await lab.refused()).message
    assert (_records(lab), len(lab.snapshots("rescue"))) == (["1", "2"], 1)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo changed > src/app.py\n", "changed files of the repository: src/app.py."),
        ("chmod +x src/app.py\n", "changed files of the repository: src/app.py."),
        ("echo new > new.txt; git add new.txt\n", "changed files of the repository: new.txt."),
        ("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m mine\n", "moved HEAD"),
        ("for n in $(seq 1001); do touch new-$n; done\n", "leaves 1001 files that git does not ignore: new-1,"),
    ],
)
async def test_what_would_pass_for_an_agents_work_is_refused(lab: StepLab, script: str, words: str) -> None:
    """Set-up that changes the repository's files, moves HEAD or leaves too many files fails the opening."""
    _ask_for(lab, script)
    error = await lab.refused()
    assert (error.type, error.non_retryable) == ("Setup", True)
    assert words in error.message
    assert error.details[0].remedy


async def test_set_up_has_a_time_for_all_its_commands(lab: StepLab) -> None:
    """At the limit of time for all commands, the running command is stopped and named."""
    _ask_for(lab, "sleep 299.75\n", 'setup = ["true", "sh install.sh"]\n[limits]\nsetup_seconds = 1\n')
    assert (await lab.refused()).message == (
        "Set-up command `sh install.sh` took longer than the 1 s that set-up has (`setup_seconds`)."
    )


@pytest.mark.needs("bubblewrap")
async def test_a_host_that_its_sandbox_refuses_set_up_is_named_in_the_remedy_and_counted(lab: StepLab) -> None:
    """The remedy names the refused host and the setting that allows it, and the refusal is counted."""
    ask = "import urllib.request; urllib.request.urlopen('https://index.example/simple', timeout=20)"
    lab.origin.push({_SETTINGS: f"setup = [['{sys.executable}', '-IS', '-c', \"{ask}\"]]\n"})
    with taken_values(PROXY_REFUSALS) as taken:
        error = await lab.refused()
    assert taken == [(1, {"step": "setup", "agent": "set-up"})]
    assert error.details[0].remedy.startswith(
        "Its sandbox refused index.example:443. Start the worker (`septet up`) again with them added to SEPTET_SETUP_HOSTS"
    )


async def test_a_cancelled_opening_ends_set_up_and_the_next_one_begins_anew(lab: StepLab) -> None:
    """A cancel ends the running command, and the next set-up begins without its remains."""
    _ask_for(lab, "[ ! -e half.txt ] || exit 9\ntouch half.txt\nexec sleep 299.125\n")
    for _ in range(2):
        opening = await halted(lab.open, lambda: processes_with("299.125"), "cancel_requested")
        assert opening.cancelled()
        assert processes_with("299.125") == []
    assert len(lab.snapshots("rescue")) == 1
