"""What comes after a work order: its pull request is watched until it is merged, closed, or a person decides."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from septet.contracts.decisions import MoveCall
    from septet.contracts.names import Stage
    from septet.contracts.pull_request import (
        TROUBLE,
        WATCHER,
        PullRequestEnd,
        PullRequestLook,
        PullRequestNews,
        PullRequestWatch,
        WatchingHost,
    )
    from septet.contracts.task import Move, Task, TaskError
    from septet.contracts.transitions import Target, check_move
    from septet.errors import RefusedTransitionError
    from septet.system.timestamps import timestamp
    from workflows._cancellation import cancel_and_wait
    from workflows._patches import has_patch
    from workflows._refusals import refusal
    from workflows._row import Row
    from workflows.activity_stubs import LOOK_AT_PULL_REQUEST
    from workflows.policies import ActivityOptions
    from workflows.update_input import reads_input

_LOOK: Final = timedelta(minutes=2)
_RETRIES: Final = RetryPolicy(maximum_interval=timedelta(minutes=5), maximum_attempts=0)
"""An open pull request and a forge that is away are looked at again by retries: they grow no history. The look
itself says after which pause."""
_BY_HOST: Final = "host-looks-at-pull-request"
"""Before it, each look at a pull request was an attempt of an activity: an Action."""
_AGAIN_AND_AGAIN: Final = ActivityOptions(start_to_close_timeout=_LOOK, retry_policy=_RETRIES)
_ONCE: Final = ActivityOptions(schedule_to_close_timeout=_LOOK, retry_policy=RetryPolicy(maximum_attempts=1))
_CLOSED: Final = "The pull request was closed without a merge."
_GO_ON: Final = "`septet move {id} executing` continues the work, `septet move {id} done` ends it."


@workflow.defn(name="PullRequest")
class PullRequestWorkflow:
    """The watch over one pull request: it has the task's row on the board from now on."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._watch: PullRequestWatch
        self._task = Task(id="")
        self._history: tuple[Move, ...] = ()
        self._looks_again = False
        self._is_looked_after = False
        """Whether a host looks, and tells what is new."""
        self._row = Row()

    @workflow.run
    async def run(self, watch: PullRequestWatch) -> Task:
        """Look until the pull request is merged, or a person says that the task is done.

        One that is closed or moved to blocked is waited with: when its work goes on, this is cancelled.
        """
        self.renew(watch)
        try:
            while self._task.stage is not Stage.DONE:
                if self._task.stage is Stage.REVIEW and self._is_looked_after:
                    await self._wait_for_news()
                elif self._task.stage is Stage.REVIEW:
                    await self._look()
                else:
                    await workflow.wait_condition(lambda: self._task.stage is not Stage.BLOCKED)
        except asyncio.CancelledError:
            self._row.erase()
            raise
        return self._task

    @workflow.query(description="The work order object, without its steps.")
    def work_order(self) -> Task:
        """Return the task."""
        return self._task

    @workflow.query(description="The stages that it went through since its work order completed.")
    def history(self) -> tuple[Move, ...]:
        """Return the history, oldest first."""
        return self._history

    @workflow.signal(description="Look again now.")
    def nudge(self) -> None:
        """End the pause before the next look; one that was closed may have been opened again."""
        self._looks_again = True
        if self._task.stage is Stage.BLOCKED:
            self._move(Stage.REVIEW, "looked at again")

    @workflow.update(description="Move the task on the board. A refusal lists where it may move from here.")
    @reads_input("move", MoveCall)
    def move(self, call: MoveCall) -> Task:
        """Move it, and return it as it is then."""
        error = None
        if call.to is Target.BLOCKED:
            error = TaskError(
                type="Blocked",
                message=call.why or "a person moved it to blocked",
                remedy=_GO_ON.format(id=self._task.id),
            )
        self._move(Stage(call.to.value), call.why, call.who or "septet", error)
        return self._task

    @move.validator
    @reads_input("move", MoveCall)
    def _may_move(self, call: MoveCall) -> None:
        """Refuse what is not allowed from here; the work itself goes on by a reset of the work order."""
        if not self._task.id:
            raise refusal("The watch has not begun yet.", "Ask again in a moment.")
        try:
            check_move(self._task, call.to)
        except RefusedTransitionError as error:
            raise refusal(error.message, error.remedy) from None
        if call.to is Target.EXECUTING:
            raise refusal(
                f"{self._task.id} is completed.", f"`septet move {self._task.id} executing` takes it up again."
            )

    @workflow.signal(description="The work order completed once more: this is what is watched now.")
    def renew(self, watch: PullRequestWatch) -> None:
        """Take in what is to be watched."""
        self._watch, self._task = watch, watch.task
        self._is_looked_after = watch.watcher is not None and has_patch(_BY_HOST)
        self._looks_again = not self._is_looked_after
        if self._is_looked_after and workflow.memo_value(WATCHER, None, type_hint=WatchingHost) != watch.watcher:
            workflow.upsert_memo({WATCHER: watch.watcher})
        self._show()

    @workflow.signal(description="A host has seen what became of the pull request, or cannot see it.")
    def looked(self, news: PullRequestNews) -> None:
        """Take in what is new; of a pull request that is not watched any more, nothing is."""
        if self._task.stage is not Stage.REVIEW or news.url != self._task.pr_url:
            return
        match news.state:
            case "merged" | "closed" as state:
                self._end(PullRequestEnd(state=state))
            case state:
                workflow.upsert_memo({TROUBLE: news if state == "unknown" else None})

    @workflow.signal(description="Another host looks from now on: the one before is gone.")
    def watch_from(self, watcher: WatchingHost) -> None:
        """Learn who looks, for people and for the other hosts."""
        queue = watcher.control_queue if self._watch.task_queue else ""
        self._watch = self._watch.model_copy(update={"watcher": watcher, "task_queue": queue})
        workflow.upsert_memo({WATCHER: watcher})

    async def _wait_for_news(self) -> None:
        """Wait for what a host tells, or for a person's word; who asks for a look now has it here, once."""
        await workflow.wait_condition(lambda: self._looks_again or self._task.stage is not Stage.REVIEW)
        if self._looks_again and self._task.stage is Stage.REVIEW:
            self._looks_again = False
            looking = self._start_look(_ONCE)
            await workflow.wait_condition(lambda: looking.done() or self._task.stage is not Stage.REVIEW)
            if not looking.done():
                await cancel_and_wait(looking)
                return
            with suppress(ActivityError):  # it is open, or the host that looks tells what is wrong
                self._end(await looking)

    async def _look(self) -> None:
        """Look until there is an end, or a reason to look anew."""
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
            PullRequestLook(repository=task.repository_url, url=task.pr_url or "", commit=task.commit_sha or ""),
            task_queue=watch.task_queue or None,
            **options,
            summary=f"is {task.pr_url} merged?",
        )

    def _end(self, end: PullRequestEnd) -> None:
        if end.state == "merged":
            self._move(Stage.DONE, "the pull request is merged")
            return
        error = TaskError(type="PullRequestClosed", message=_CLOSED, remedy=_GO_ON.format(id=self._task.id))
        self._move(Stage.BLOCKED, _CLOSED, error=error)

    def _move(self, to: Stage, why: str, who: str = "septet", error: TaskError | None = None) -> None:
        now, before = timestamp(workflow.now()), self._task.stage.value
        move = Move(when=now, who=who, **{"from": before}, to=to.value, why=why)
        self._history = (*self._history, move)
        self._task = self._task.model_copy(update={"stage": to, "error": error, "updated_at": now})
        self._show()

    def _show(self) -> None:
        task = self._task
        why = f"\n\n**{task.error.type}**: {task.error.message} {task.error.remedy}" if task.error else ""
        workflow.set_current_details(f"**{task.id}** · {task.pr_url} · **{task.stage.value}**{why}")
        self._row.write(task)
