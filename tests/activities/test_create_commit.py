import subprocess
from pathlib import Path

import pytest
from fakes.repositories import Origin, git
from fakes.step_lab import BRANCH, FIXED, PLAN, StepLab, settings_of, step_lab

from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepResult
from septet.errors import EvidenceError
from septet.git.evidence.added_lines import committed_patches
from septet.git.evidence.worker_keys import refuse_keys_in_commits
from septet.system.masking import hide

MESSAGE = "committer: bug: sum the prices\n\nThis is issue 7."


async def _committed(lab: StepLab, checks: str = "[]") -> StepResult:
    lab.origin.push({".septet/septet.toml": f"checks = {checks}\n"})
    await lab.open_to(Step.CREATE_COMMIT, {"answer": {"commit_message": MESSAGE}})
    return await lab.run(Step.CREATE_COMMIT)


async def test_the_engine_commits_with_the_agents_message(lab: StepLab) -> None:
    """The engine commits the agent's uncommitted work: HEAD moves, the tree is clean, and the result has the SHA."""
    done = await _committed(lab)
    assert (done.verdict, done.result_text) == (Verdict.DONE, MESSAGE)
    assert done.commit_sha == git(lab.worktree, "rev-parse", f"refs/heads/{BRANCH}")
    assert git(lab.worktree, "log", "-1", "--format=%B") == f"{MESSAGE}\n\nAssisted-by: scripted"
    assert git(lab.worktree, "status", "--porcelain") == ""
    assert git(lab.worktree, "diff", "--name-only", lab.place.base_sha, "HEAD").split() == [PLAN, "src/app.py"]


def _make_ssh_key(key: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    return key


@pytest.mark.needs("ssh-keygen")
async def test_commits_are_signed_with_an_ssh_key(tmp_path: Path, origin: Origin) -> None:
    """With `gpg.format = ssh` in the worker's own git settings, git verifies the commit's signature."""
    settings = settings_of(tmp_path, sign_commits=True)
    key = _make_ssh_key(tmp_path / "key")
    allowed = tmp_path / "allowed"
    allowed.write_text(f"w@example.org {key.with_suffix('.pub').read_text()}")
    (Path(settings.git_env["HOME"]) / ".gitconfig").write_text(
        f"[gpg]\n\tformat = ssh\n[user]\n\tname = W\n\temail = w@example.org\n\tsigningkey = {key}\n"
    )
    async with step_lab(tmp_path, origin, settings) as lab:
        done = await _committed(lab)
        assert done.verdict is Verdict.DONE
        git(lab.worktree, "-c", f"gpg.ssh.allowedSignersFile={allowed}", "verify-commit", done.commit_sha or "")


@pytest.mark.law
async def test_a_second_attempt_commits_nothing_more(lab: StepLab) -> None:
    """The attempt after a lost result finds the commit and adds none."""
    done = await _committed(lab)
    again = await lab.run(Step.CREATE_COMMIT)
    assert (again.verdict, again.commit_sha) == (Verdict.DONE, done.commit_sha)


async def test_nothing_to_commit_is_refused(lab: StepLab) -> None:
    """If HEAD is still at the base commit, the step is not proven."""
    await lab.open()
    lab.scenario(create_commit={"answer": {"commit_message": MESSAGE}})
    refused = await lab.run(Step.CREATE_COMMIT)
    assert refused.verdict is Verdict.UNPROVEN
    assert "nothing to commit" in refused.reasons[0]


async def test_a_failing_checks_output_is_the_reason(lab: StepLab) -> None:
    """A check that fails stops the commit, and the reason holds its output."""
    refused = await _committed(lab, """["true", "grep --count return src/app.py missing.py"]""")
    assert refused.verdict is Verdict.UNPROVEN
    assert "`grep --count return src/app.py missing.py` failed (exit code 2)" in refused.reasons[0]
    assert "src/app.py:1" in refused.reasons[0]
    assert git(lab.worktree, "rev-parse", "HEAD") == lab.place.base_sha


async def test_a_check_that_does_not_end_is_a_failing_one(lab: StepLab) -> None:
    """A check that takes longer than its limit stops the commit."""
    refused = await _committed(lab, """["sleep 30"]\n[limits]\ncheck_seconds = 0.2""")
    assert refused.verdict is Verdict.UNPROVEN
    assert "took longer than" in refused.reasons[0]


async def test_checks_run_in_the_agents_environment(lab: StepLab) -> None:
    """A check has an agent's environment, without the worker's keys."""
    refused = await _committed(lab, """["sh -c 'env; false'"]""")
    assert "HOME=" in refused.reasons[0]
    assert "a-key-that-no-agent-sees" not in refused.reasons[0]


async def test_checks_are_those_of_the_base_commit(lab: StepLab) -> None:
    """An agent that edits the repository's settings does not change the checks of its own work."""
    lab.origin.push({".septet/septet.toml": 'checks = ["false"]\n'})
    await lab.open_to(Step.CREATE_COMMIT)
    lab.write(".septet/septet.toml", "checks = []\n")
    lab.write("src/app.py", FIXED)
    lab.scenario(create_commit={"answer": {"commit_message": MESSAGE}})
    refused = await lab.run(Step.CREATE_COMMIT)
    assert "`false` failed (exit code 1)" in refused.reasons[0]


async def test_a_key_of_the_worker_in_a_file_stops_the_commit(lab: StepLab) -> None:
    """The reason names file and line, and never the key; the commit follows once the agent has removed the key."""
    hide(["a-key-of-the-worker"])
    await lab.open_to(Step.CREATE_COMMIT)
    answer = {"answer": {"commit_message": MESSAGE}}
    key = {"src/login.py": "import os\n\nKEY = 'a-key-of-the-worker'\n"}
    lab.scenario(create_commit=[{**answer, "edits": key}, {**answer, "edits": {"src/login.py": None}}])
    refused = await lab.run(Step.CREATE_COMMIT)
    assert refused.verdict is Verdict.UNPROVEN
    assert "src/login.py line 3" in refused.reasons[0]
    assert "a-key-of-the-worker" not in refused.model_dump_json()
    assert [(found.id, found.rule) for found in refused.findings] == [("", "worker-key")]
    assert git(lab.worktree, "rev-parse", "HEAD") == lab.place.base_sha
    again = await lab.run(Step.CREATE_COMMIT, attempt=2, reasons=refused.reasons)
    assert again.verdict is Verdict.DONE


async def test_a_key_that_an_agents_commits_bring_is_not_pushed(lab: StepLab) -> None:
    """The error names the commit that adds a key to a line or its message, also if the next commit removes the key."""
    await lab.open_to(Step.CREATE_COMMIT)
    base = git(lab.worktree, "rev-parse", "HEAD")
    named = []
    hide(["a-key-of-the-worker"])
    for content, message in (
        ("KEY = 'a-key-of-the-worker'\n", "in"),
        ("KEY = ''\n", "out"),
        ("", "by a-key-of-the-worker"),
    ):
        lab.write("src/login.py", content)
        git(lab.worktree, "add", "-A")
        git(lab.worktree, "commit", "-q", "-m", message)
        named.append(git(lab.worktree, "rev-parse", "HEAD"))
    for since, sha, found in ((base, named[1], named[0]), (named[0], named[2], named[2])):
        with pytest.raises(EvidenceError, match=found[:12]):
            refuse_keys_in_commits(committed_patches(lab.place, since, sha))
    refuse_keys_in_commits(committed_patches(lab.place, named[0], named[1]))
