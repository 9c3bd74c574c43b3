from pathlib import Path

from fakes.repositories import ALLOW, git, make_origin
from fakes.step_lab import BRANCH, FIXED, IMPLEMENTED, PLAN, StepLab

from septet.contracts.names import Step, Verdict


async def test_a_plan_alone_is_no_work(lab: StepLab) -> None:
    """If only the plan's file changed, the step is not proven."""
    await lab.open_to(Step.IMPLEMENT_PLAN, {"edits": {PLAN: "# Bug: another plan\n"}, "answer": IMPLEMENTED})
    refused = await lab.run(Step.IMPLEMENT_PLAN)
    assert refused.verdict is Verdict.UNPROVEN
    assert "Nothing changed beyond the plan" in refused.reasons[0]


async def test_a_branch_without_the_base_commit_is_refused(lab: StepLab) -> None:
    """A branch whose history lacks the base commit is not proven."""
    lab.agent(f"""
git('checkout', '-q', '--orphan', 'fresh')
write('src/app.py', {FIXED!r})
git('add', '-A')
git('commit', '-q', '-m', 'a new history')
git('branch', '-q', '-M', {BRANCH!r})
answer({IMPLEMENTED!r})
""")
    await lab.open_to(Step.IMPLEMENT_PLAN)
    refused = await lab.run(Step.IMPLEMENT_PLAN)
    assert refused.verdict is Verdict.UNPROVEN
    assert lab.place.base_sha in refused.reasons[0]


async def test_an_agent_that_says_it_failed_is_believed(lab: StepLab) -> None:
    """`success: false` is a refusal: the reason holds the agent's words, and the work is in a rescue."""
    await lab.open_to(
        Step.IMPLEMENT_PLAN, {"edits": {"src/half.py": "half\n"}, "refuse": "The plan contradicts itself."}
    )
    refused = await lab.run(Step.IMPLEMENT_PLAN)
    assert (refused.verdict, refused.result_text) == (Verdict.REFUSED, None)
    assert "The plan contradicts itself." in refused.reasons[0]
    assert [rescue.snapshot for rescue in refused.rescues] == lab.snapshots("rescue")
    assert (lab.worktree / "src/half.py").exists()


async def test_edits_inside_a_submodule_are_told(lab: StepLab, tmp_path: Path) -> None:
    """Edits in a submodule alone fail the first try; beside other work they are a warning."""
    library = make_origin(tmp_path / "library", "lib.git")
    library.push({"lib.py": "1\n"})
    git(lab.origin.checkout, "submodule", "add", "-q", str(library.bare), "lib", env=ALLOW)
    lab.origin.push({})
    await lab.open_to(Step.IMPLEMENT_PLAN)
    git(lab.worktree, "submodule", "update", "-q", "--init", env=ALLOW)
    lab.parts.host.snapshots.take(lab.place, "checkpoint", "the submodule is there")
    inside = {"lib/lib.py": "2\n", "lib/new.py": "2\n"}
    lab.scenario(implement_plan={"edits": inside, "answer": IMPLEMENTED})
    asked = await lab.run(Step.IMPLEMENT_PLAN)
    assert asked.verdict is Verdict.UNPROVEN
    assert "nobody would get them: lib/lib.py, lib/new.py." in asked.reasons[0]
    lab.scenario(implement_plan={"edits": {**inside, "src/app.py": FIXED}, "answer": IMPLEMENTED})
    told = await lab.run(Step.IMPLEMENT_PLAN, attempt=2, reasons=asked.reasons)
    assert told.verdict is Verdict.DONE
    assert "not part of the work, for it lies inside submodules: lib/lib.py, lib/new.py" in told.warnings
