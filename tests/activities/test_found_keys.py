"""Findings of keys before a commit and a push. The keys here are made up, and no key stands here whole."""

import json
from collections.abc import Mapping

import pytest
from fakes.compiled_scanner import lend_scanner, shared_scanner
from fakes.repositories import git
from fakes.step_lab import StepLab

from septet.contracts.names import Step, Verdict
from septet.contracts.rework import Rework
from septet.contracts.steps import StepResult
from septet.keys.scanner import MESSAGE as MESSAGE_PATH
from septet.keys.scanner import AddedLine, KeyScanner

MESSAGE = "committer: bug: sum the prices"
TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
OTHER = "ghp_" + "zY9dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3xW1"
LOGIN = f"import os\n\nKEY = '{TOKEN}'\n"


@pytest.fixture(scope="session")
def compiled() -> KeyScanner:
    """Return a scanner with compiled rules; compiling takes some seconds."""
    scanner = shared_scanner()
    scanner.scan([AddedLine("a.py", 1, TOKEN.encode())])
    return scanner


@pytest.fixture(autouse=True)
def scanner_of_the_host(lab: StepLab, compiled: KeyScanner) -> None:
    """Give the host the compiled rules."""
    lend_scanner(lab.parts.host.state, compiled)


async def _commit(
    lab: StepLab, edits: Mapping[str, str | None] | None = None, *, attempt: int = 1, allowed: tuple[str, ...] = ()
) -> StepResult:
    """Run the step: the agent makes the edits, and the engine commits."""
    lab.scenario(create_commit={"edits": edits or {}, "answer": {"commit_message": MESSAGE}})
    return await lab.run(Step.CREATE_COMMIT, attempt=attempt, allowed_findings=allowed)


async def test_what_looks_like_a_key_stops_the_commit(lab: StepLab) -> None:
    """The finding names file, line and rule without the value; the commit follows once the key is removed."""
    await lab.open_to(Step.CREATE_COMMIT)
    refused = await _commit(lab, {"src/login.py": LOGIN})
    (found,) = refused.findings
    assert (refused.verdict, found.path, found.line, found.rule) == (
        Verdict.UNPROVEN, "src/login.py", 3, "github-pat",
    )  # fmt: skip
    assert "src/login.py line 3 (github-pat)" in refused.reasons[0]
    assert TOKEN not in refused.model_dump_json()
    assert git(lab.worktree, "rev-parse", "HEAD") == lab.place.base_sha
    assert (await _commit(lab, {"src/login.py": "KEY = ''\n"}, attempt=2)).verdict is Verdict.DONE


async def test_a_person_lets_it_pass_wherever_it_stands_in_the_file(lab: StepLab) -> None:
    """A finding that a person allowed passes also on another line."""
    await lab.open_to(Step.CREATE_COMMIT)
    (found,) = (await _commit(lab, {"src/login.py": LOGIN})).findings
    moved = {"src/login.py": "\n" + LOGIN}
    assert (await _commit(lab, moved, attempt=2, allowed=(found.id,))).verdict is Verdict.DONE


async def test_a_persons_word_is_for_one_value(lab: StepLab) -> None:
    """Another value in the same place is another finding."""
    await lab.open_to(Step.CREATE_COMMIT)
    (found,) = (await _commit(lab, {"src/login.py": LOGIN})).findings
    changed = {"src/login.py": LOGIN.replace(TOKEN, OTHER)}
    (other,) = (await _commit(lab, changed, attempt=2, allowed=(found.id,))).findings
    assert other.id != found.id


async def test_the_repository_allows_as_of_the_base_commit(lab: StepLab) -> None:
    """The base's settings allow paths and rules; the agent's edit of the settings allows none."""
    allows = '[[allow_findings]]\npath = "docs/*"\nrule = "github-pat"\n'
    lab.origin.push({".septet/septet.toml": allows})
    await lab.open_to(Step.CREATE_COMMIT)
    own = '[[allow_findings]]\npath = "*"\n'
    refused = await _commit(lab, {".septet/septet.toml": own, "docs/login.md": LOGIN, "src/login.py": LOGIN})
    assert [finding.path for finding in refused.findings if finding.kind == "key"] == ["src/login.py"]


async def test_an_agents_own_commits_are_read_too(lab: StepLab) -> None:
    """The finding names the commit that adds the key, also if the next commit removes the key."""
    await lab.open_to(Step.CREATE_COMMIT)
    lab.agent(
        f"write('src/login.py', {LOGIN!r}); git('add', '-A'); git('commit', '-q', '-m', 'in');"
        f"write('src/login.py', ''); git('add', '-A'); git('commit', '-q', '-m', 'out');"
        f"answer({{'commit_message': {MESSAGE!r}}})"
    )
    (found,) = (await lab.run(Step.CREATE_COMMIT)).findings
    first = git(lab.worktree, "rev-parse", "HEAD~1")
    assert (found.commit, found.line) == (first[:12], 3)
    done = await lab.run(Step.CREATE_COMMIT, attempt=2, allowed_findings=(found.id,))
    assert done.verdict is Verdict.DONE


async def test_what_looks_like_a_key_is_not_pushed(lab: StepLab) -> None:
    """All commits are scanned again before the push."""
    await lab.open_to(Step.CREATE_COMMIT)
    (found,) = (await _commit(lab, {"src/login.py": LOGIN})).findings
    done = await _commit(lab, attempt=2, allowed=(found.id,))
    lab.progress = lab.progress.model_copy(update={"commit_sha": done.commit_sha})
    lab.scenario(create_pull_request={"answer": {"title": "Sum", "body": "It sums."}})
    refused = await lab.run(Step.CREATE_PULL_REQUEST)
    assert [finding.id for finding in refused.findings] == [found.id]
    assert git(lab.origin.bare, "branch", "--list", lab.progress.branch_name or "") == ""
    passed = await lab.run(Step.CREATE_PULL_REQUEST, attempt=2, allowed_findings=(found.id,))
    assert passed.verdict is Verdict.DONE


async def test_the_message_of_a_rounds_commit_is_read_before_its_push(lab: StepLab) -> None:
    """A key in the message of a round's commit stops the push until a person allows the finding."""
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    head, branch = git(lab.worktree, "rev-parse", "HEAD"), lab.progress.branch_name or ""
    git(lab.worktree, "push", "-q", str(lab.origin.bare), branch)
    (lab.place.records / "rework.json").write_text(json.dumps({"run_id": lab.run_id, "round": 1, "words": {}}))
    rework = Rework(round=1, url="https://forge.example/pull/1", head=head)
    answer = {"success": True, "summary": "Done.", "commit_message": f"rework: use {TOKEN}", "replies": []}
    lab.scenario(rework={"answer": answer, "edits": {"src/app.py": "x = 1\n"}})
    refused = await lab.run(Step.IMPLEMENT_PLAN, rework=rework)
    (found,) = refused.findings
    assert (found.path, found.rule) == (MESSAGE_PATH, "github-pat")
    assert lab.origin.sha(branch) == head
    passed = await lab.run(Step.IMPLEMENT_PLAN, attempt=2, rework=rework, allowed_findings=(found.id,))
    assert (passed.verdict, passed.commit_sha) == (Verdict.DONE, lab.origin.sha(branch))
