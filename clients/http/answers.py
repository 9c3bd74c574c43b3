"""The bodies of the API's responses, with Septet's own names and with the names that older scripts use."""

from typing import Any, Literal

from clients.disk.workspace_view import CommitCount
from septet.contracts.costs import Estimate
from septet.contracts.names import Status, Step
from septet.contracts.replies import LogsReply, NetworkReply, StepsReply
from septet.contracts.task import Task
from septet.contracts.wire import Wire

Phase = Literal["planning", "implementing", "completed"]


class GitProgress(Wire):
    """The progress of a work order in git."""

    agent_work_order_id: str
    current_phase: Phase | None = None
    """The phase that the work order is in, or ended in; `None` before the work order starts."""
    git_commit_count: int | None = None
    """The number of commits on top of the base; `None` if this host cannot count the commits."""
    git_files_changed: int = 0
    """The number of files that differ from the base, or of the files that the last step reported, at most 100."""
    latest_commit_message: str | None = None
    git_branch_name: str | None = None


class AgentWorkOrder(Task):
    """The work order, with a second set of names, which older scripts use."""

    agent_work_order_id: str
    """The same as `id`."""
    git_branch_name: str | None = None
    """The same as `branch_name`."""
    github_pull_request_url: str | None = None
    """The same as `pr_url`."""
    github_issue_number: str | None = None
    """The same as `issue_number`; `None` for an issue given as text."""
    current_phase: Phase | None = None
    git_commit_count: int | None = None
    """The number of commits on top of the base; `None` in lists, and for a workspace on another host."""
    git_files_changed: int = 0
    error_message: str | None = None
    """The same as `error.message`; `None` without an error."""
    estimate: Estimate | None = None
    """The estimate of the cost, in the answer to a start; else `None`."""


class StepHistory(StepsReply):
    """The steps of a work order so far."""

    agent_work_order_id: str


class LogPage(LogsReply):
    """The log entries of the agents, from `offset` on."""

    agent_work_order_id: str
    limit: int
    offset: int


class NetworkPage(NetworkReply):
    """The network requests of the agents and checks, from `offset` on."""

    agent_work_order_id: str
    limit: int
    offset: int


class Health(Wire):
    """The state of the API and of its Temporal server."""

    status: Literal["healthy", "degraded"]
    service: Literal["septet"] = "septet"
    version: str
    temporal: bool
    """Whether the Temporal server answers."""


def agent_work_order(task: Task, commits: CommitCount | None = None) -> AgentWorkOrder:
    """Return a work order with Septet's own names and with the names that older scripts use."""
    progress = git_progress(task, commits)
    fields: dict[str, Any] = dict(task)
    return AgentWorkOrder(
        **fields,
        agent_work_order_id=task.id,
        git_branch_name=task.branch_name,
        github_pull_request_url=task.pr_url,
        github_issue_number=task.issue_number or None,
        current_phase=progress.current_phase,
        git_commit_count=progress.git_commit_count,
        git_files_changed=progress.git_files_changed,
        error_message=task.error.message if task.error else None,
    )


def git_progress(task: Task, commits: CommitCount | None = None) -> GitProgress:
    """Return the progress of a work order in git; `commits` is the count from the work order's workspace."""
    counts = [len(step.files_changed) for step in task.steps if step.files_changed]
    phase: Phase | None = "completed" if task.status is Status.COMPLETED else None
    if task.status not in {Status.PENDING, Status.COMPLETED}:
        phase = "implementing" if task.plan_path is not None else "planning"
    message = next((step.output for step in task.steps if step.step == Step.CREATE_COMMIT and step.success), None)
    return GitProgress(
        agent_work_order_id=task.id,
        current_phase=phase,
        git_commit_count=0 if task.commit_sha is None else commits.commits if commits else None,
        git_files_changed=commits.files if commits else counts[-1] if counts else 0,
        latest_commit_message=message,
        git_branch_name=task.branch_name,
    )
