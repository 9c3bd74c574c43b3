from fakes.step_lab import PLAN, StepLab

from septet.contracts.names import Step, Verdict


async def test_the_planners_file_is_found(lab: StepLab) -> None:
    """The path of a plan that is there is the step's answer."""
    await lab.open_to(Step.FIND_PLAN_FILE)
    lab.scenario()
    done = await lab.run(Step.FIND_PLAN_FILE)
    assert (done.verdict, done.result_text) == (Verdict.DONE, PLAN)


async def test_no_plan_is_an_answer(lab: StepLab) -> None:
    """`0` says that there is no plan: the workflow plans once more."""
    await lab.open_to(Step.FIND_PLAN_FILE)
    lab.scenario(find_plan_file={"answer": "0"})
    done = await lab.run(Step.FIND_PLAN_FILE)
    assert (done.verdict, done.result_text) == (Verdict.DONE, "0")


async def test_a_path_without_a_file_is_refused(lab: StepLab) -> None:
    """A plan that the agent names but nobody wrote is not proven."""
    await lab.open_to(Step.FIND_PLAN_FILE)
    lab.scenario(find_plan_file={"answer": "specs/another.md"})
    refused = await lab.run(Step.FIND_PLAN_FILE)
    assert refused.verdict is Verdict.UNPROVEN
    assert "specs/another.md" in refused.reasons[0]


async def test_a_plan_that_the_repository_ignores_is_told(lab: StepLab) -> None:
    """The step is done with it, and warns that the plan will not be on the branch."""
    lab.origin.push({".gitignore": "specs/\n"})
    await lab.open_to(Step.FIND_PLAN_FILE)
    lab.scenario()
    done = await lab.run(Step.FIND_PLAN_FILE)
    assert (done.verdict, done.result_text) == (Verdict.DONE, PLAN)
    assert [warning for warning in done.warnings if f"the repository ignores {PLAN}" in warning] != []
