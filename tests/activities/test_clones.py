"""An agent that uses git in its clone: work on the branch counts, and work elsewhere is named and kept."""

from pathlib import Path

import pytest
from fakes.repositories import git
from fakes.step_lab import BRANCH, FIXED, IMPLEMENTED, PLAN, StepLab

from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepResult
from septet.git.snapshots.restore import restore
from septet.git.vault.vault import find, vault_at

TREE = ".claude/worktrees/agent-1"
IN_A_WORKTREE = f"""
git('worktree', 'add', '-q', {TREE!r}, '-b', 'own')
os.rename('new.txt', {TREE!r} + '/new.txt')
git('checkout', '-q', 'src')
os.chdir({TREE!r})
commit('own')
"""
COMMITS = f"""
def commit(message):
    git('add', '-A')
    git('-c', 'user.name=z', '-c', 'user.email=z@z', 'commit', '-q', '--allow-empty', '-m', message)

write('src/app.py', {FIXED!r})
write('new.txt', 'new')
"""


async def _implemented(lab: StepLab, does: str, **facts: object) -> StepResult:
    lab.agent(f"{COMMITS}{does}\nanswer({IMPLEMENTED!r})\n")
    if lab.workspace is None:
        await lab.open_to(Step.IMPLEMENT_PLAN)
    return await lab.run(Step.IMPLEMENT_PLAN, **facts)


async def _tried_again(lab: StepLab, refused: StepResult, does: str = "") -> tuple[StepResult, str]:
    start = lab.snapshots("checkpoint")[-1]
    again = await _implemented(lab, does, attempt=2, reasons=refused.reasons, starts_from=start)
    return again, lab.prompts[-1]


def _restored(lab: StepLab, result: StepResult) -> Path:
    """Restore the clone by the snapshot that the reasons name, and return its folder."""
    (name,) = {word for word in " ".join(result.reasons).split() if word.startswith("wo-1/")}
    to = lab.root / name.replace("/", "-")
    restore(vault_at(lab.place), find(vault_at(lab.place), name), to)
    return to


@pytest.mark.parametrize(
    ("does", "was_on"),
    [
        ("git('checkout', '-q', '-b', 'agent/own'); commit('own')", "branch agent/own"),
        (
            "commit('a'); git('checkout', '-q', '--detach'); commit('b'); open('.git/index.lock', 'w').close()",
            "no branch",
        ),
    ],
)
async def test_commits_that_only_add_to_the_branch_are_taken(lab: StepLab, does: str, was_on: str) -> None:
    """The branch moves forward to HEAD, and the step needs no second try."""
    done = await _implemented(lab, does)
    assert (done.verdict, done.reasons) == (Verdict.DONE, ())
    assert any(f"left HEAD on {was_on}" in warning for warning in done.warnings)
    assert git(lab.worktree, "symbolic-ref", "--short", "HEAD") == BRANCH
    assert {change.path for change in done.files_changed} >= {"src/app.py", "new.txt"}


@pytest.mark.parametrize(
    "does",
    [
        "commit('a'); git('checkout', '-q', '-b', 'other', 'HEAD~1'); write('b', 'b'); commit('b')",
        "git('checkout', '-q', '--orphan', 'fresh'); commit('a new history')",
        "commit('a'); git('checkout', '-q', '--detach'); write('.git/MERGE_HEAD', 'x')",
    ],
)
async def test_what_does_more_than_add_to_the_branch_is_not_taken(lab: StepLab, does: str) -> None:
    """If the branch would lose a commit, or a merge is under way, HEAD and branch stay and the step is not proven."""
    refused = await _implemented(lab, does)
    assert refused.verdict is Verdict.UNPROVEN
    assert f"go back to {BRANCH}" in refused.reasons[0]


@pytest.mark.parametrize(
    ("does", "where", "kept"),
    [
        ("git('stash', '-u', '-q')", "a stash", "stash@{0}^3:new.txt"),
        ("git('stash', '-q'); git('stash', '-u', '-q')", "a stash with 2 entries", "stash@{1}:src/app.py"),
        (
            "git('checkout', '-q', '-b', 'agent/own'); commit('own'); git('checkout', '-q', '@{-1}')",
            "branch agent/own",
            "agent/own:new.txt",
        ),
        (
            "git('checkout', '-q', '--detach'); commit('own'); git('checkout', '-q', '@{-1}')",
            "on no branch",
            "HEAD@{1}:new.txt",
        ),
        (
            IN_A_WORKTREE,
            f"the worktree {TREE}, on branch own",
            "own:new.txt",
        ),
    ],
)
async def test_work_that_stands_elsewhere_is_named(lab: StepLab, does: str, where: str, kept: str) -> None:
    """The step is not proven; its reason and the next prompt name the place of the work and the way to restore it."""
    refused = await _implemented(lab, does)
    assert refused.verdict is Verdict.UNPROVEN
    assert where in refused.reasons[-1]
    assert f"on branch {BRANCH}" in refused.reasons[-1]
    assert "septet retry wo-1 --from implement_plan" in refused.reasons[-1]
    restored = _restored(lab, refused)
    assert git(restored, "cat-file", "-t", kept) == "blob"
    is_laid = "on no branch" not in where  # commits on a detached HEAD are only named
    assert ("its files were laid there" in refused.reasons[-1]) == is_laid
    assert {(lab.worktree / "new.txt").exists(), (restored / "new.txt").exists()} == {is_laid}
    again, prompt = await _tried_again(lab, refused)
    assert (again.verdict, where in prompt) == (Verdict.DONE, True)
    assert "files that it changed" not in prompt


async def test_a_stash_that_would_overwrite_work_is_named_alone(lab: StepLab) -> None:
    """A stash is only named if its files would overwrite the plan that the agent wrote again."""
    does = f"git('stash', '-u', '-q'); write({PLAN!r}, '# Bug: totals, again')"
    refused = await _implemented(lab, does)
    assert "a stash" in refused.reasons[-1]
    assert "laid" not in refused.reasons[-1]
    assert (lab.worktree / PLAN).read_text() == "# Bug: totals, again"


async def test_a_stash_beside_work_that_is_done_is_a_warning(lab: StepLab) -> None:
    """The step is done, and its warning names the stash that is no part of the pull request."""
    done = await _implemented(lab, "git('stash', '-q'); write('new.txt', 'newer')")
    assert done.verdict is Verdict.DONE
    assert "not part of the work, and left in the clone: a stash" in done.warnings


@pytest.mark.parametrize(
    ("does", "what"),
    [
        ("shutil.rmtree('.git')", "`.git` was deleted"),
        ("shutil.rmtree('.git/objects')", "`.git/objects` was deleted"),
        ("shutil.rmtree('.git'); git('init', '-q'); commit('Initial commit')", "`.git` was made again"),
        ("git('init', '-q', '--separate-git-dir', '.git2')", "`.git` was replaced"),
    ],
)
async def test_a_git_folder_that_is_gone_is_put_back_with_the_work_kept(
    lab: StepLab, does: str, what: str
) -> None:
    """The reason says what happened to `.git`, and the second try finds its files in a sound repository."""
    refused = await _implemented(lab, f"import shutil\n{does}")
    assert refused.verdict is Verdict.UNPROVEN
    assert what in refused.reasons[0]
    assert git(lab.worktree, "rev-parse", BRANCH) == lab.place.base_sha
    assert (lab.worktree / "new.txt").read_text() == "new"
    assert (_restored(lab, refused) / "new.txt").exists()
    again, prompt = await _tried_again(lab, refused)
    assert (again.verdict, what in prompt) == (Verdict.DONE, True)
    assert {change.path for change in again.files_changed} >= {"src/app.py", "new.txt"}
