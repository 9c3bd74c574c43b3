from pathlib import Path

import pytest
from fakes.step_lab import PLAN, StepLab

from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepResult


async def _planned(lab: StepLab, plan_path: str, **edits: str | None) -> StepResult:
    await lab.open_to(
        Step.BUILD_PLAN, {"edits": edits, "answer": {"plan_path": plan_path, "summary": "One step."}}
    )
    return await lab.run(Step.BUILD_PLAN)


@pytest.mark.parametrize("dressed", [f"[{PLAN}]({PLAN})", f"`{PLAN}`", f"[`{PLAN}`](./{PLAN})", f'**"{PLAN}"**'])
async def test_a_path_in_markdown_is_taken_without_it(lab: StepLab, dressed: str) -> None:
    """A link with two equal parts, backquotes and quotes are removed if the path with them names no file."""
    done = await _planned(lab, dressed, **{PLAN: "# Bug: totals\n"})
    assert (done.verdict, done.result_text) == (Verdict.DONE, PLAN)


async def test_a_file_whose_name_is_in_backquotes_is_named_as_it_stands(lab: StepLab) -> None:
    """The step removes backquotes only if the path with them names no file."""
    done = await _planned(lab, "`plan`.md", **{"`plan`.md": "# Bug\n", "plan.md": "# Other\n"})
    assert (done.verdict, done.result_text) == (Verdict.DONE, "`plan`.md")


@pytest.mark.parametrize("dressed", [f"[the plan]({PLAN})", f"[README.md]({PLAN})", f"[{PLAN}](specs/none.md)"])
async def test_a_link_whose_parts_differ_is_asked_for_again_in_a_short_turn(lab: StepLab, dressed: str) -> None:
    """The answer counts as unread: a finalizer can ask the same session, and the plan is not paid twice."""
    unclear = await _planned(lab, dressed, **{PLAN: "# Bug: totals\n"})
    assert (unclear.verdict, unclear.result_text) == (Verdict.UNPARSED, None)
    assert unclear.session_id
    assert "two parts differ" in unclear.reasons[0]


async def test_a_plan_behind_a_symlink_out_of_the_worktree_is_refused(lab: StepLab, tmp_path: Path) -> None:
    """A symlink to a text outside the worktree is no plan, and the work is in a rescue."""
    (tmp_path / "secret.md").write_text("not a plan\n", encoding="utf-8")
    lab.agent(
        f"os.symlink({str(tmp_path / 'secret.md')!r}, 'plan.md'); answer({{'plan_path': 'plan.md', 'summary': 'x'}})"
    )
    await lab.open_to(Step.BUILD_PLAN)
    refused = await lab.run(Step.BUILD_PLAN)
    assert refused.verdict is Verdict.UNPROVEN
    assert refused.reasons[0]
    assert [rescue.snapshot for rescue in refused.rescues] == lab.snapshots("rescue")
