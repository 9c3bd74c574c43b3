"""The agent's work on any repository: plausible, real, and different for each issue."""

from pathlib import Path
from typing import Any

import pytest
from fakes.opened_workspace import WORKSPACE
from fakes.scripted_agent import Ran, ScriptedAgent

from septet.agents.scripted.task import step_of
from septet.answers.steps import request_schema_of
from septet.commands.command import load, values
from septet.commands.placeholders import prompt
from septet.contracts.names import IssueClass, Step
from septet.contracts.steps import Progress

SPELLED_OUT = "It is off by one.\n\nIn `src/a.py`, `x < 3`\nshould be `x <= 3`."
NOTHING_YET = Progress()


def ask(agent: ScriptedAgent, step: Step, issue: dict[str, Any], progress: Progress = NOTHING_YET) -> Ran:
    about = {"issue_number": str(issue.get("number", "")), "issue_title": issue["title"]}
    workspace = WORKSPACE.model_copy(update={**about, "path": str(agent.folder), "work_order_id": "wo-7"})
    command = load(step, progress.issue_class or IssueClass.BUG, lambda _path: None)
    filled = prompt(command, values(step, workspace, progress, issue))
    return agent.run(filled)


def put(agent: ScriptedAgent, path: str, content: str) -> Path:
    file = agent.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode())
    return file


def implement(agent: ScriptedAgent, issue: dict[str, Any]) -> Ran:
    progress = Progress(issue_class=IssueClass.BUG)
    plan = ask(agent, Step.BUILD_PLAN, issue, progress).answer["plan_path"]
    return ask(agent, Step.IMPLEMENT_PLAN, issue, progress.model_copy(update={"plan_path": plan}))


def test_a_change_that_is_spelled_out_is_made_and_told(agent: ScriptedAgent) -> None:
    """A change in the issue's text edits the file byte by byte and adds a line to the changelog."""
    file = put(agent, "src/a.py", "")
    file.write_bytes(b"if x < 3:\r\n    # \xff\r\n")
    changelog = put(agent, "CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n- Old.\n")
    ran = implement(agent, {"number": 1, "title": "Mend the sum", "body": SPELLED_OUT})
    assert file.read_bytes() == b"if x <= 3:\r\n    # \xff\r\n"
    assert changelog.read_text() == "# Changelog\n\n## [Unreleased]\n\n- Fixed: Mend the sum\n- Old.\n"
    assert ran.answer["success"] is True
    assert ran.tools() == ["Edit", "Edit"]


def test_work_that_was_begun_is_not_done_twice(agent: ScriptedAgent) -> None:
    """A second start finds the finished change and changes no file."""
    put(agent, "src/a.py", "if x < 3:\n")
    put(agent, "CHANGELOG.md", "## Unreleased\n")
    issue = {"number": 1, "title": "Mend the sum", "body": SPELLED_OUT}
    implement(agent, issue)
    assert implement(agent, issue).tools() == []


@pytest.mark.parametrize(
    ("body", "summary"),
    [
        ("add(1, 2) gives -1", "The issue spells out no change, and the scripted agent makes no other."),
        ("In `app.py`, `a - b` should be `a + b`.", "`app.py` does not hold `a - b`."),
    ],
)
def test_an_issue_that_it_can_do_nothing_for_is_not_called_done(
    agent: ScriptedAgent, body: str, summary: str
) -> None:
    """An issue without a possible change fails with the reason, and no file changes."""
    ran = implement(agent, {"title": "add() subtracts", "body": body})
    assert ran.answer["success"] is False
    assert ran.answer["summary"].startswith(summary)
    assert ran.tools() == []


@pytest.mark.parametrize("path", ["../outside.txt", ".git/config"])
def test_a_change_outside_the_worktree_is_not_made(agent: ScriptedAgent, path: str) -> None:
    """The agent changes no file outside its folder and none of git's own files."""
    outside = agent.folder.parent / "outside.txt"
    outside.write_text("secret\n")
    put(agent, ".git/config", "secret\n")
    implement(agent, {"number": 1, "title": "T", "body": f"In `{path}`, `secret` should be `public`."})
    assert outside.read_text() == "secret\n"
    assert (agent.folder / ".git" / "config").read_text() == "secret\n"


@pytest.mark.parametrize("step", Step)
def test_a_command_of_somebody_elses_is_recognised_by_its_schema(step: Step) -> None:
    """The answer's schema identifies the step of another command; a prompt without heading and schema has no step."""
    assert step_of("Do it.", dict(request_schema_of(step))) == step
    assert step_of("Do it.\n# Other\n", {"properties": {"x": {}}}) == step_of("Do it.", None) == ""
