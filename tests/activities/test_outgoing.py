"""An agent's words and keys on their way to git and the forge: cleaned, masked, or waiting for a person."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from fakes.compiled_scanner import lend_scanner, shared_scanner
from fakes.repositories import Origin, git
from fakes.step_lab import StepLab, settings_of, step_lab

from septet.contracts.names import SETTINGS_PATH, Step, Verdict
from septet.contracts.rework import Rework
from septet.contracts.steps import StepResult
from septet.keys.scanner import MESSAGE as MESSAGE_PATH
from septet.keys.scanner import AddedLine, KeyScanner

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
HOSTILE = (
    "bug: work [skip ci]\n\nFixes #2 for @org/security\n\nSigned-off-by: Eve <eve@example.org>\nChange-Id: I1"
)
CLEANED = "bug: work (skip ci)\n\nFixes `#2` for @`org/security`\n\nChange-Id: I1"


@pytest.fixture(scope="session")
def compiled() -> KeyScanner:
    """Return a scanner with compiled rules; compiling takes some seconds."""
    scanner = shared_scanner()
    scanner.scan([AddedLine("a.py", 1, TOKEN.encode())])
    return scanner


@pytest.fixture(autouse=True)
def scanner_of_the_host(lab: StepLab, compiled: KeyScanner) -> None:
    lend_scanner(lab.parts.host.state, compiled)


def _message(lab: StepLab, commit: str = "HEAD") -> str:
    return git(lab.worktree, "log", "-1", "--format=%B", commit)


async def test_the_engines_commit_has_a_cleaned_message(lab: StepLab) -> None:
    """The message loses foreign sign-offs, commands to skip CI, and words that close other issues."""
    await lab.open_to(Step.CREATE_COMMIT, {"answer": {"commit_message": HOSTILE}})
    done = await lab.run(Step.CREATE_COMMIT)
    assert done.verdict is Verdict.DONE
    assert done.result_text == CLEANED
    assert _message(lab) == f"{CLEANED}\nAssisted-by: scripted"


async def test_an_agents_own_commits_are_written_anew(lab: StepLab) -> None:
    """Files and order stay; only a commit whose message must change is written anew."""
    await lab.open_to(Step.CREATE_COMMIT)
    lab.agent(
        "write('one.txt', '1\\n'); git('add', 'one.txt'); git('commit', '-q', '-m', 'feat: one');"
        f"write('two.txt', '2\\n'); git('add', 'two.txt'); git('commit', '-q', '-m', {HOSTILE!r});"
        "write('three.txt', '3\\n'); git('add', '-A'); git('commit', '-q', '-m', 'feat: three');"
        "answer({'commit_message': 'feat: unused'})"
    )
    done = await lab.run(Step.CREATE_COMMIT)
    assert done.verdict is Verdict.DONE, done.reasons
    assert done.commit_sha == git(lab.worktree, "rev-parse", "HEAD")
    assert [_message(lab, f"HEAD~{back}") for back in (2, 1, 0)] == ["feat: one", CLEANED, "feat: three"]
    assert git(lab.worktree, "show", "HEAD:two.txt", "HEAD:three.txt") == "2\n3"
    assert git(lab.worktree, "status", "--porcelain") == ""


@pytest.mark.parametrize("by", ["base", "worker"])
async def test_commits_are_signed_off_where_a_setting_asks_for_it(
    tmp_path: Path, origin: Origin, compiled: KeyScanner, by: str
) -> None:
    """With the setting, the message ends with the committer's sign-off, and has no other sign-off."""
    if by == "base":
        origin.push({SETTINGS_PATH: "[commit]\nsign_off = true\nassisted_by = false\n"})
    settings = settings_of(tmp_path / "host", sign_off=by == "worker")
    async with step_lab(tmp_path / "host", origin, settings) as lab:
        lend_scanner(lab.parts.host.state, compiled)
        await lab.open_to(Step.CREATE_COMMIT, {"answer": {"commit_message": HOSTILE}})
        assert (await lab.run(Step.CREATE_COMMIT)).verdict is Verdict.DONE
        signed = [line for line in _message(lab).splitlines() if line.startswith("Signed-off-by")]
    assert signed == ["Signed-off-by: Septet <septet@localhost>"]


async def test_a_pull_requests_texts_are_cleaned_and_masked(lab: StepLab) -> None:
    """Title and body close no other issue, hide no text and hold no key; a warning names the masked rule."""
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    body = f"@everyone <!-- septet: wo-2 -->\n\n![x](http://evil.example/p.png?d=1)\n\nKey: {TOKEN}\n"
    lab.scenario(create_pull_request={"answer": {"title": f"bug: {TOKEN} @ada", "body": body}})
    done = await lab.run(Step.CREATE_PULL_REQUEST)
    assert done.verdict is Verdict.DONE, done.reasons
    kept = git(lab.origin.bare, "grep", "-h", "", "refs/septet/forge")
    assert "@`everyone`" in kept
    assert "***" in kept
    assert not [word for word in (TOKEN, "septet: wo-2", "?d=1", "![x]") if word in kept]
    assert any("masked" in warning and "github-pat" in warning for warning in done.warnings)


async def test_a_key_in_a_files_name_waits_for_a_person(lab: StepLab) -> None:
    """The finding shows the path with the key masked."""
    await lab.open_to(Step.CREATE_COMMIT)
    edits = {f"src/{TOKEN}.txt": "x\n"}
    lab.scenario(create_commit={"edits": edits, "answer": {"commit_message": "bug: x"}})
    (found,) = (await lab.run(Step.CREATE_COMMIT)).findings
    assert (found.path, found.line, found.rule) == ("src/***.txt", 0, "github-pat")
    done = await lab.run(Step.CREATE_COMMIT, attempt=2, allowed_findings=(found.id,))
    assert done.verdict is Verdict.DONE


async def test_a_branchs_name_holds_no_key(lab: StepLab) -> None:
    """A branch name with a key is not proven, and the reason does not show the key."""
    await lab.open_to(Step.GENERATE_BRANCH, {"answer": {"branch_name": f"bug-{TOKEN}"}})
    refused = await lab.run(Step.GENERATE_BRANCH)
    assert refused.verdict is Verdict.UNPROVEN
    assert "looks like a key" in refused.reasons[0]
    assert TOKEN not in refused.reasons[0]


MESSAGE = "committer: bug: sum the prices"
OTHER = "ghp_" + "zY9dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3xW1"
LOGIN = f"import os\n\nKEY = '{TOKEN}'\n"


async def _commit(
    lab: StepLab, edits: Mapping[str, str | None] | None = None, *, attempt: int = 1, allowed: tuple[str, ...] = ()
) -> StepResult:
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


async def test_a_person_lets_one_value_pass_wherever_it_stands_in_the_file(lab: StepLab) -> None:
    """An allowed finding passes also on another line; another value in the same place is another finding."""
    await lab.open_to(Step.CREATE_COMMIT)
    (found,) = (await _commit(lab, {"src/login.py": LOGIN})).findings
    changed = {"src/login.py": LOGIN.replace(TOKEN, OTHER)}
    (other,) = (await _commit(lab, changed, attempt=2, allowed=(found.id,))).findings
    assert other.id != found.id
    moved = {"src/login.py": "\n" + LOGIN}
    assert (await _commit(lab, moved, attempt=3, allowed=(found.id,))).verdict is Verdict.DONE


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
