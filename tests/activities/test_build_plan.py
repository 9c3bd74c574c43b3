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


async def test_the_plan_is_a_file_of_the_worktree(lab: StepLab) -> None:
    """A plan that the agent wrote is proven, and is the only changed file."""
    done = await _planned(lab, PLAN, **{PLAN: "# Bug: totals\n"})
    assert (done.verdict, done.result_text) == (Verdict.DONE, PLAN)
    assert [(change.path, change.operation) for change in done.files_changed] == [(PLAN, "create")]


async def test_an_absolute_path_inside_becomes_relative(lab: StepLab) -> None:
    """The result names the plan relative to the worktree's root, also if the agent answers with an absolute path."""
    done = await _planned(lab, str(lab.worktree / PLAN), **{PLAN: "# Bug: totals\n"})
    assert (done.verdict, done.result_text) == (Verdict.DONE, PLAN)


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


@pytest.mark.parametrize(
    ("plan_path", "edits", "reason"),
    [
        ("specs/none.md", {}, "no file"),
        ("specs/empty.md", {"specs/empty.md": ""}, "empty"),
        ("../outside.md", {}, "outside the worktree"),
        ("[the plan](specs/none.md)", {}, "no file 'specs/none.md'"),
    ],
)
async def test_a_plan_that_is_not_there_is_refused(
    lab: StepLab, plan_path: str, edits: dict[str, str], reason: str
) -> None:
    """A plan that is missing, empty or outside the worktree is not proven, and the reason says why."""
    refused = await _planned(lab, plan_path, **edits)
    assert (refused.verdict, refused.result_text) == (Verdict.UNPROVEN, None)
    assert reason in refused.reasons[0]


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


async def test_the_agent_reads_why_it_was_refused(lab: StepLab) -> None:
    """The prompt of the second try holds the reasons of the first."""
    await lab.open_to(Step.BUILD_PLAN, {})
    await lab.run(Step.BUILD_PLAN, attempt=2, reasons=("There is no file 'plan.md' in the worktree.",))
    assert "There is no file 'plan.md' in the worktree." in (lab.runs[0].folder / "prompt.md").read_text()
