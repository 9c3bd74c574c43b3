"""The scripted agent in a pipeline: its solutions are true and follow the issue's words."""

from typing import Any

import pytest
from fakes.opened_workspace import WORKSPACE
from fakes.scripted_agent import Ran, ScriptedAgent

from septet.commands.loader import load
from septet.commands.prompt import prompt
from septet.commands.values import values
from septet.contracts.names import IssueClass, Step
from septet.contracts.solution import SolutionAnswer
from septet.contracts.steps import Progress
from septet.contracts.workspace import Workspace
from septet.pipelines.notes import executor_note, planner_note
from septet.pipelines.solution import IssueScope, findings


def workspace(agent: ScriptedAgent, issue_id: str) -> Workspace:
    """Return a lane with an issue of the pipeline `p1`."""
    return WORKSPACE.model_copy(update={"work_order_id": f"p1-{issue_id}", "path": str(agent.folder)})


def planned(agent: ScriptedAgent, issue_id: str, body: str) -> SolutionAnswer:
    """Plan an issue, and return the solution."""
    issue: dict[str, Any] = {"number": "", "title": f"Do {issue_id}", "body": body, "url": ""}
    filled = values(Step.BUILD_PLAN, workspace(agent, issue_id), Progress(issue_class=IssueClass.BUG), issue)
    command = load(Step.BUILD_PLAN, IssueClass.BUG, lambda _path: None)
    ran = agent.run(prompt(command, filled, planner_note("p1", issue_id)))
    return SolutionAnswer.model_validate(ran.answer, strict=False)


def executed(agent: ScriptedAgent, issue_id: str, solution: SolutionAnswer) -> Ran:
    """Execute a solution, and return the run."""
    progress = Progress(issue_class=IssueClass.BUG, plan_path=solution.plan_path, branch_name="b")
    filled = values(Step.IMPLEMENT_PLAN, workspace(agent, issue_id), progress, {})
    command = load(Step.IMPLEMENT_PLAN, IssueClass.BUG, lambda _path: None)
    note = executor_note("p1", issue_id, solution)
    return agent.run(prompt(command, filled, note))


@pytest.mark.parametrize("changelog", ["", "# Changes\n\n## Unreleased\n"])
def test_what_is_predicted_is_what_changes(agent: ScriptedAgent, changelog: str) -> None:
    """The predicted files are the changed files; two issues share only the changelog, if the folder has one."""
    (agent.folder / "a.txt").write_text("old\n", encoding="utf-8")
    if changelog:
        (agent.folder / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    bodies = {"7": "In `a.txt`, `old` should be `new`.", "8": "Write `one line` into `deep/b.txt`."}
    solutions = {}
    for issue_id, body in bodies.items():
        solution = planned(agent, issue_id, body)
        assert findings(solution, IssueScope(issue_id, solution.plan_path, agent.folder)) == ()
        answer = executed(agent, issue_id, solution).answer
        assert set(answer["files_modified"]) == set(solution.predicted_files)
        assert [task["id"] for task in answer["tasks"]] == [task.id for task in solution.tasks]
        solutions[issue_id] = set(solution.predicted_files)
    assert (agent.folder / "a.txt").read_text() == "new\n"
    assert (agent.folder / "deep/b.txt").read_text() == "one line\n"
    assert (solutions["7"] & solutions["8"]) == ({"CHANGELOG.md"} if changelog else set())
