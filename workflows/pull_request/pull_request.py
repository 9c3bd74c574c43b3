"""Watch a work order's pull request until it is merged, or until a person moves the task to done."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError, WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from septet.contracts.names import WATCHER, Stage, Status, watch_id
    from septet.contracts.pull_request_watch import (
        Follow,
        PullRequestEnd,
        PullRequestLook,
        PullRequestWatch,
        WatchingHost,
    )
    from septet.contracts.task import Task
    from septet.contracts.task_rows import MEMO, row_of
    from septet.contracts.workspace import PULL_REQUESTS, Workspace
    from workflows.pull_request.handlers import PullRequestHandlers
    from workflows.wire.activity_stubs import LOOK_AT_PULL_REQUEST
    from workflows.wire.cancellation import cancel_and_wait, wait_despite_cancel
    from workflows.wire.failures import AgentEnded
    from workflows.wire.policies import ActivityOptions
    from workflows.wire.search_attributes import start_attributes

_LOOK: Final = timedelta(minutes=2)
_RETRIES: Final = RetryPolicy(maximum_interval=timedelta(minutes=5), maximum_attempts=0)
"""The retries of a poll that found an open pull request or no forge. Retries keep the history short."""
_AGAIN_AND_AGAIN: Final = ActivityOptions(start_to_close_timeout=_LOOK, retry_policy=_RETRIES)
_ONCE: Final = ActivityOptions(schedule_to_close_timeout=_LOOK, retry_policy=RetryPolicy(maximum_attempts=1))


@workflow.defn(name="PullRequest")
class PullRequestWorkflow(PullRequestHandlers):
    """Watches one pull request, and shows its task on the board in place of the completed work order."""

    @workflow.init
    def __init__(self, watch: PullRequestWatch) -> None:
        super().__init__(watch)

    @workflow.run
    async def run(self, watch: PullRequestWatch) -> Task:
        """Watch until the pull request is merged, or a person moves the task to done.

        The watch lasts while the pull request is closed or the task is blocked; continued work cancels the watch.
        """
        del watch  # it is known since the beginning, and may have been renewed
        self._begin()
        try:
            while self._task.stage is not Stage.DONE:
                if self._task.stage is Stage.REVIEW and self._follower.is_due:
                    await self._take_round()
                elif self._task.stage is Stage.REVIEW and self._is_looked_after:
                    await self._wait_for_news()
                elif self._task.stage is Stage.REVIEW:
                    await self._look()
                else:
                    await workflow.wait_condition(lambda: self._task.stage is not Stage.BLOCKED)
        except asyncio.CancelledError:
            self._row.erase()
            raise
        return self._task

    async def _take_round(self) -> None:
        """Run a round of the agent; a person's move, a merge or a cancel ends the round with a rescue."""
        if not self._follower.take_round():
            self._show()
            return
        self._move(Stage.EXECUTING, self._follower.text)
        work = asyncio.create_task(self._follower.carry_out(self._task))
        try:
            await workflow.wait_condition(lambda: work.done() or self._task.stage is not Stage.EXECUTING)
        except asyncio.CancelledError:
            await self._end_round(work)
            raise
        if not work.done():
            await self._end_round(work)
        if self._task.stage is not Stage.EXECUTING:
            self._show()
            return
        work.result()
        self._move(Stage.REVIEW, self._follower.text)

    async def _end_round(self, work: asyncio.Task[None]) -> None:
        """Cancel a round, and wait until it ends; end its agent if the round could not."""
        work.cancel()
        await wait_despite_cancel(work.done)
        try:
            work.result()
        except AgentEnded:
            return
        except asyncio.CancelledError:
            ending = asyncio.create_task(self._follower.end_agent())
            await wait_despite_cancel(ending.done)

    async def _wait_for_news(self) -> None:
        """Wait for a host's report or a person's move; after the signal `nudge`, poll once."""
        try:
            await workflow.wait_condition(
                lambda: self._looks_again or self._follower.is_due or self._task.stage is not Stage.REVIEW,
                timeout=self._follower.quiet_left,
                timeout_summary="is anything new on the pull request?",
            )
        except TimeoutError:
            self._follower.end("nothing was new for a while")
            self._show()
            return
        if self._looks_again and self._task.stage is Stage.REVIEW:
            self._looks_again = False
            looking = self._start_look(_ONCE)
            await workflow.wait_condition(lambda: looking.done() or self._task.stage is not Stage.REVIEW)
            if not looking.done():
                await cancel_and_wait(looking)
                return
            with suppress(ActivityError):  # it is open, or the polling host reports the trouble
                end = await looking
                if end.state == "open":
                    self._follower.note(end.events)
                else:
                    self._end(end)

    async def _look(self) -> None:
        """Poll until the pull request ends; stop after a signal `nudge`, or when the task leaves review."""
        self._looks_again = False
        looking = self._start_look()
        await workflow.wait_condition(
            lambda: looking.done() or self._looks_again or self._task.stage is not Stage.REVIEW
        )
        if looking.done() and not self._looks_again and self._task.stage is Stage.REVIEW:
            self._end(await looking)
            return
        await cancel_and_wait(looking)

    def _start_look(self, options: ActivityOptions = _AGAIN_AND_AGAIN) -> workflow.ActivityHandle[PullRequestEnd]:
        watch, task = self._watch, self._watch.task
        return LOOK_AT_PULL_REQUEST.start(
            PullRequestLook(
                repository=task.repository_url,
                url=task.pr_url or "",
                commit=task.commit_sha or "",
                follows=self._follower.is_active,
            ),
            task_queue=watch.task_queue or None,
            **options,
            summary=f"is {task.pr_url} merged?",
        )


async def watch_pull_request(task: Task, workspace: Workspace, follow: Follow | None) -> None:
    """Start the watch over a completed work order's pull request, or renew the existing watch."""
    row = row_of(task.model_copy(update={"status": Status.COMPLETED, "stage": Stage.REVIEW, "error": None}))
    queue = (workspace.control_queue or workspace.task_queue) if workspace.forge == "local" else ""
    watcher = WatchingHost(host=workspace.host, control_queue=workspace.control_queue)
    watch = PullRequestWatch(
        task=row,
        forge=workspace.forge,
        task_queue=queue,
        watcher=watcher if PULL_REQUESTS in workspace.serves else None,
        follow=follow,
    )
    for _ in range(3):
        if await _start_watch(watch) or await _renew_watch(watch):
            return


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
