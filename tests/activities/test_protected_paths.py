"""Changes of files that CI, forges and agents obey unreviewed wait before the commit and before each push."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.repositories import Origin, git
from fakes.step_lab import StepLab, settings_of, step_lab

from septet.contracts.names import Step, Verdict
from septet.contracts.rework import Rework
from septet.contracts.steps import StepResult

MESSAGE = "committer: bug: sum the prices"
WORKFLOW = ".github/workflows/ci.yml"
ON_PUSH = {WORKFLOW: "on: push\n"}
TEXTS = {"answer": {"title": "Sum", "body": "It sums."}}
NOTICE = f"**Changes what CI, forges or agents act on unreviewed:** `{WORKFLOW}`\n"


async def _commit(
    lab: StepLab, edits: Mapping[str, str | None], *, attempt: int = 1, allowed: tuple[str, ...] = ()
) -> StepResult:
    lab.scenario(create_commit={"edits": edits, "answer": {"commit_message": MESSAGE}})
    return await lab.run(Step.CREATE_COMMIT, attempt=attempt, allowed_findings=allowed)


async def _committed(lab: StepLab, edits: Mapping[str, str | None]) -> tuple[str, ...]:
    await lab.open_to(Step.CREATE_COMMIT)
    ids = tuple(finding.id for finding in (await _commit(lab, edits)).findings)
    done = await _commit(lab, {}, attempt=2, allowed=ids)
    assert done.verdict is Verdict.DONE, done.reasons
    lab.progress = lab.progress.model_copy(update={"commit_sha": done.commit_sha})
    return ids


async def _open(lab: StepLab, *, attempt: int = 1, allowed: tuple[str, ...] = ()) -> StepResult:
    lab.scenario(create_pull_request=TEXTS)
    return await lab.run(Step.CREATE_PULL_REQUEST, attempt=attempt, allowed_findings=allowed)


async def test_a_change_waits_and_a_yes_is_for_its_content(lab: StepLab) -> None:
    """The change waits for a person; an allowed finding covers only its content."""
    await lab.open_to(Step.CREATE_COMMIT)
    refused = await _commit(lab, ON_PUSH)
    (found,) = refused.findings
    assert (refused.verdict, refused.is_a_persons, found.kind, found.where) == (
        Verdict.UNPROVEN, True, "path", f"{WORKFLOW} (added)",
    )  # fmt: skip
    assert WORKFLOW in refused.reasons[0]
    assert git(lab.worktree, "rev-parse", "HEAD") == lab.place.base_sha
    other = await _commit(lab, {WORKFLOW: "on: pull_request_target\n"}, attempt=2, allowed=(found.id,))
    assert [finding.path for finding in other.findings] == [WORKFLOW]
    assert (await _commit(lab, ON_PUSH, attempt=3, allowed=(found.id,))).verdict is Verdict.DONE


async def test_nothing_is_pushed_without_a_yes(lab: StepLab) -> None:
    """Before the push the commits are checked again; the pull request's first line names the allowed path."""
    ids = await _committed(lab, ON_PUSH)
    assert [finding.id for finding in (await _open(lab)).findings] == list(ids)
    assert git(lab.origin.bare, "branch", "--list", lab.progress.branch_name or "") == ""
    opened = await _open(lab, attempt=2, allowed=ids)
    assert opened.verdict is Verdict.DONE
    assert _pull_request(lab)["body"].startswith(NOTICE)
    assert _pull_request(lab)["draft"] is False


async def test_a_base_that_was_written_anew_is_compared_with_its_own_files(lab: StepLab) -> None:
    """Changes of protected files by the new base are no findings of the work."""
    lab.origin.push({"secret.txt": "erased later\n"})
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    lab.origin.rewrite({"secret.txt": None, "CLAUDE.md": "of the base\n"})
    opened = await _open(lab)
    assert (opened.verdict, "force-pushed" in " ".join(opened.warnings)) == (Verdict.DONE, True)
    assert "unreviewed" not in _pull_request(lab)["body"]


@pytest.mark.parametrize("of_base", [True, False])
async def test_drafts_go_out_where_the_base_says_so(lab: StepLab, *, of_base: bool) -> None:
    """The base's `on_protected = "draft"` opens a draft; the agent's own setting is a finding itself."""
    own = "[pull_request]\ndraft = false\n"
    if of_base:
        lab.origin.push({".septet/septet.toml": 'on_protected = "draft"\n'})
    await lab.open_to(Step.CREATE_COMMIT)
    done = await _commit(lab, {**ON_PUSH, ".septet/septet.toml": f'on_protected = "draft"\nprotected = []\n{own}'})
    assert bool(done.findings) is not of_base
    if not of_base:
        assert {finding.path for finding in done.findings} == {WORKFLOW, ".septet/septet.toml"}
        return
    lab.progress = lab.progress.model_copy(update={"commit_sha": done.commit_sha})
    assert (await _open(lab)).verdict is Verdict.DONE
    pull = _pull_request(lab)
    assert (pull["draft"], pull["body"].split("\n")[0].count("`")) == (True, 4)


async def test_a_draft_is_no_way_into_a_pull_request_that_is_open(lab: StepLab) -> None:
    """If the pull request is open for merge, a protected change waits before the push, also with `draft`."""
    lab.origin.push({".septet/septet.toml": 'on_protected = "draft"\n'})
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    assert (await _open(lab)).verdict is Verdict.DONE
    head = lab.origin.sha(lab.progress.branch_name or "")
    done = await _commit(lab, ON_PUSH, attempt=2)
    lab.progress = lab.progress.model_copy(update={"commit_sha": done.commit_sha})
    (found,) = (await _open(lab, attempt=2)).findings
    assert lab.origin.sha(lab.progress.branch_name or "") == head
    opened = await _open(lab, attempt=3, allowed=(found.id,))
    assert (opened.verdict, _pull_request(lab)["body"].startswith(NOTICE)) == (Verdict.DONE, True)


async def test_a_refusal_is_told_to_the_agent(lab: StepLab) -> None:
    """With `refuse` the change is a reason for the agent, and the commit follows once the agent reverts it."""
    lab.origin.push({".septet/septet.toml": 'on_protected = "refuse"\nprotected = ["deploy"]\n'})
    await lab.open_to(Step.CREATE_COMMIT)
    refused = await _commit(lab, {"k8s/Deploy/x.yml": "1\n", **ON_PUSH})
    assert (refused.findings, refused.is_a_persons) == ((), False)
    assert "k8s/Deploy/x.yml (added)" in refused.reasons[0]
    assert (await _commit(lab, {"k8s/Deploy/x.yml": None}, attempt=2)).verdict is Verdict.DONE


async def test_the_worker_chooses_where_the_repository_does_not(tmp_path: Path, origin: Origin) -> None:
    """The worker's list and action count for a repository without its own."""
    settings = settings_of(tmp_path).model_copy(update={"protected": ("src",), "on_protected": "refuse"})
    async with step_lab(tmp_path, origin, settings) as lab:
        await lab.open_to(Step.CREATE_COMMIT)
        refused = await _commit(lab, ON_PUSH)
    assert (refused.findings, "src/app.py (changed)" in refused.reasons[0]) == ((), True)
    assert WORKFLOW not in refused.reasons[0]


async def test_many_are_one_finding_more(lab: StepLab) -> None:
    """Twenty changes are findings of their own, and the rest is one finding, which changes with its content."""
    await lab.open_to(Step.CREATE_COMMIT)
    edits = {f".claude/{number:03}.md": "x\n" for number in range(60)}
    refused = await _commit(lab, edits)
    assert [len(refused.findings), refused.findings[-1].where] == [
        21, "40 more (from .claude/020.md to .claude/059.md)",
    ]  # fmt: skip
    ids = tuple(finding.id for finding in refused.findings)
    edits[".claude/040.md"] = "y\n"
    (rest,) = (await _commit(lab, edits, attempt=2, allowed=ids)).findings
    assert (await _commit(lab, {}, attempt=2, allowed=(*ids, rest.id))).verdict is Verdict.DONE


async def test_a_round_waits_too(lab: StepLab) -> None:
    """A round waits before its push for its own protected changes, and not for changes pushed before."""
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    branch = lab.progress.branch_name or ""
    lab.write("CLAUDE.md", "pushed before\n")
    head = lab.commit()
    git(lab.worktree, "push", "-q", str(lab.origin.bare), branch)
    (lab.place.records / "rework.json").write_text(json.dumps({"run_id": lab.run_id, "round": 1, "words": {}}))
    rework = Rework(round=1, url="https://forge.example/pull/1", head=head)
    answer = {"success": True, "summary": "Done.", "commit_message": "rework: ci", "replies": []}
    lab.scenario(rework={"answer": answer, "edits": ON_PUSH})
    refused = await lab.run(Step.IMPLEMENT_PLAN, rework=rework)
    (found,) = refused.findings
    assert (found.path, refused.is_a_persons, lab.origin.sha(branch)) == (WORKFLOW, True, head)
    passed = await lab.run(Step.IMPLEMENT_PLAN, attempt=2, rework=rework, allowed_findings=(found.id,))
    assert (passed.verdict, passed.commit_sha) == (Verdict.DONE, lab.origin.sha(branch))


async def test_work_on_anothers_branch_is_compared_with_that(lab: StepLab) -> None:
    """On a pipeline's one branch only the work order's own changes are findings."""
    await lab.open_to(Step.CREATE_COMMIT)
    lab.write("CLAUDE.md", "of the work order before\n")
    assert lab.workspace is not None
    lab.workspace = lab.workspace.model_copy(update={"began_at": lab.commit()})
    assert [finding.path for finding in (await _commit(lab, ON_PUSH)).findings] == [WORKFLOW]


def _pull_request(lab: StepLab) -> Any:
    return json.loads(lab.pull_requests[0])
