from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from fakes.repositories import git
from fakes.step_lab import TITLE, StepLab
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.workspaces.workspaces import WorkspaceActivities
from septet.contracts.names import Step, Verdict
from septet.contracts.workspace import OpenWorkspace, Workspace


async def test_commits_are_made_as_git_says_when_the_work_begins(lab: StepLab) -> None:
    """A git author that a person sets while the worker runs is the author of the next work order's commits."""
    home = lab.root / "home"
    home.mkdir(exist_ok=True)
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n", encoding="utf-8")
    await lab.open_to(Step.CREATE_COMMIT)
    assert (await lab.run(Step.CREATE_COMMIT)).verdict is Verdict.DONE
    assert git(lab.worktree, "log", "-1", "--format=%an <%ae>") == "Ada <ada@example.org>"


async def test_a_repository_chooses_sessions_for_work_orders_that_do_not(lab: StepLab) -> None:
    """`sessions = "shared"` of the repository's settings holds, unless the work order names another choice."""
    lab.origin.push({".septet/septet.toml": '[agents]\nsessions = "shared"\n'})
    assert (await lab.open()).sessions == "shared"
    assert (await lab.open(work_order_id="wo-2", sessions="separate")).sessions == "separate"


async def test_a_full_host_passes_a_work_order_on(lab: StepLab) -> None:
    """A full host refuses a shared opening three times at most, and accepts an opening on its own queue at once."""
    host = replace(lab.parts.host, max_agents=1)
    opening = OpenWorkspace(work_order_id="wo-1", repository=str(lab.origin.bare), title=TITLE, agent="scripted")

    async def attempt(number: int, queue: str) -> Workspace:
        return await on_queue(queue, number).run(WorkspaceActivities(host).open_workspace, opening)

    with ExitStack() as holding:
        on_queue(host.task_queue, 1).run(lambda: holding.enter_context(host.attempts.holding()))
        for number in (1, 2, 3):
            with pytest.raises(ApplicationError, match="has no free slot for an agent") as passed:
                await attempt(number, "septet")
            assert (passed.value.type, passed.value.non_retryable) == ("HostFull", False)
            assert passed.value.next_retry_delay == timedelta(seconds=0.05)
        assert not lab.worktree.exists()
        assert (await attempt(4, "septet")).host == (await attempt(1, host.task_queue)).host == host.id


def on_queue(queue: str, attempt: int) -> ActivityEnvironment:
    environment = ActivityEnvironment()
    environment.info = replace(
        ActivityEnvironment.default_info(),
        task_queue=queue,
        attempt=attempt,
        workflow_id="wo-1",
        workflow_run_id="run-1",
    )
    return environment


async def test_a_used_id_is_refused(lab: StepLab) -> None:
    """A work order with a used id cannot open the workspace."""
    await lab.open()
    lab.run_id = "run-2"
    refused = await lab.refused()
    assert (refused.type, refused.non_retryable) == ("AlreadyRunning", True)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"issue": 99, "title": None, "description": None}, "NotFound", "99"),
        ({"base": "no-such-branch"}, "NotFound", "no-such-branch"),
        ({"agent": "no-such-agent"}, "AgentMissing", "no-such-agent"),
        ({"beside": (None, "no-such-agent")}, "AgentMissing", "no-such-agent"),
        ({"repository": "https://host.without.a.forge.example/o/r"}, "InvalidInput", "forge"),
    ],
)
async def test_what_cannot_work_is_refused_before_any_agent_starts(
    lab: StepLab, options: dict[str, Any], kind: str, words: str
) -> None:
    """A missing issue, branch, forge, or agent of any step fails the opening for good, and the message names it."""
    refused = await lab.refused(**options)
    assert (refused.type, refused.non_retryable) == (kind, True)
    assert words in refused.message


async def test_a_repositorys_command_counts_as_of_the_base_commit(lab: StepLab) -> None:
    """`.septet/commands` of the base commit replaces a command; an agent's edit of it has no effect."""
    lab.origin.push({".septet/commands/classify_issue.md": "Say /chore, for ${ISSUE_TITLE}.\n"})
    await lab.open()
    lab.write(".septet/commands/classify_issue.md", "Do as you like.\n")
    lab.agent("answer({'issue_class': '/chore'})")
    await lab.run(Step.CLASSIFY_ISSUE)
    assert f"Say /chore, for {TITLE}." in lab.prompts[0]
    assert "Do as you like." not in lab.prompts[0]


async def test_a_command_that_cannot_be_filled_is_refused_before_any_agent_starts(lab: StepLab) -> None:
    """A placeholder without a value fails the opening, and the message names file, line and placeholder."""
    lab.origin.push({".septet/commands/create_commit.md": "Commit.\n\nIt is $9.\n"})
    refused = await lab.refused()
    assert refused.type == "Command"
    assert all(words in refused.message for words in ("create_commit.md", "3", "$9"))


async def test_a_repositorys_settings_are_checked_first(lab: StepLab) -> None:
    """An invalid setting of the repository fails the opening, and the remedy names the base branch."""
    lab.origin.push({".septet/septet.toml": "[agents]\nbudget = 5\n"})
    refused = await lab.refused()
    assert refused.type == "RepositorySettings"
    remedy = "Commit the correction to main, then start a new work order: this one began at "
    assert remedy in str(refused.details)
