"""Starts the watch over a pull request, which outlives its work order."""

from temporalio import workflow
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

from septet.contracts.board import MEMO, row_of
from septet.contracts.names import WATCHER, Stage, Status, watch_id
from septet.contracts.pull_request import Follow, PullRequestWatch, WatchingHost
from septet.contracts.task import Task
from septet.contracts.workspace import PULL_REQUESTS, Workspace
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.wire.search_attributes import start_attributes

_TRIES = 3


async def watch_pull_request(task: Task, workspace: Workspace, follow: Follow | None) -> None:
    """Start the watch over the pull request of a completing work order, or renew an existing watch."""
    row = row_of(task.model_copy(update={"status": Status.COMPLETED, "stage": Stage.REVIEW, "error": None}))
    local = workspace.forge == "local"
    queue = (workspace.control_queue or workspace.task_queue) if local else ""
    watch = PullRequestWatch(
        task=row, forge=workspace.forge, task_queue=queue, watcher=_watcher_on(workspace), follow=follow
    )
    for _ in range(_TRIES):
        if await _start_watch(watch) or await _renew_watch(watch):
            return


def _watcher_on(workspace: Workspace) -> WatchingHost | None:
    if PULL_REQUESTS not in workspace.serves:
        return None
    return WatchingHost(host=workspace.host, control_queue=workspace.control_queue)


async def _start_watch(watch: PullRequestWatch) -> bool:
    try:
        await workflow.start_child_workflow(
            PullRequestWorkflow.run,
            watch,
            id=watch_id(watch.task.id),
            parent_close_policy=ParentClosePolicy.ABANDON,
            memo={MEMO: watch.task} | ({WATCHER: watch.watcher} if watch.watcher else {}),
            search_attributes=start_attributes(watch.task),
            static_summary=f"{watch.task.pr_url}: {watch.task.title}"[:200],
        )
    except WorkflowAlreadyStartedError:
        return False
    return True


async def _renew_watch(watch: PullRequestWatch) -> bool:
    try:
        await workflow.get_external_workflow_handle(watch_id(watch.task.id)).signal(
            PullRequestWorkflow.renew, watch
        )
    except FailureError:  # it ended just now
        return False
    return True
