"""The work order: one issue on its way to a pull request."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from septet.contracts.names import Stage, Status, Step
    from septet.contracts.order import FOLLOW_IN_PIPELINE, WorkOrderInput
    from septet.contracts.pull_request_watch import Follow
    from septet.contracts.task import Task, TaskError
    from septet.contracts.task_rows import waits_in
    from septet.git.engine.address import with_project
    from workflows.hosts.host_watch import place_call
    from workflows.pull_request.pull_request import watch_pull_request
    from workflows.tracker_session import report_failure
    from workflows.wire.cancellation import wait_despite_cancel
    from workflows.wire.failures import AgentEnded, AgentLeft, StepFailed, explain_failure, failure_facts
    from workflows.wire.inputs import invalid_input, parse_input, takes_raw_input
    from workflows.work_order.execution import WorkOrderBase


@workflow.defn(name="WorkOrder")
class WorkOrder(WorkOrderBase):
    """Turns one issue into a pull request in seven steps; each result is checked before the next step."""

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> Task:
        """Classify, plan, find the plan, branch, implement, commit, open the pull request; return the task."""
        self._accept(order, rest)
        await self._report_outcome(self._carry_out_steps())
        return self._state.task

    async def _carry_out_steps(self) -> None:
        await self._wait_for_turn()
        await self._open_workspace()
        await self._take(Step.CLASSIFY_ISSUE)
        await self._take(Step.BUILD_PLAN)
        await self._find_plan()
        if await self._is_to_implement():
            await self._wait_for_approval()
            await self._hand_over_plan()
            await self._name_branch()
            await self._take(Step.IMPLEMENT_PLAN)
            await self._take(Step.CREATE_COMMIT)
            await self._take(Step.CREATE_PULL_REQUEST)
            await self._watch_pull_request()

    def _accept(self, order: RawValue | None, rest: tuple[object, ...]) -> None:
        info = workflow.info()
        of_pipeline = info.parent is not None
        self._order = parse_input(info.workflow_id, (order, *rest), WorkOrderInput, by_workflow=of_pipeline)
        if self._order.follow_pr and self._order.pipeline is not None:
            raise invalid_input(FOLLOW_IN_PIPELINE)
        stage = waits_in(self._order)
        if stage and self._order.project is None:
            self._order = with_project(self._order)
        self._decisions.is_in_pipeline = self._order.pipeline is not None
        self._state.begin(info.workflow_id, self._order, info.start_time, stage)
        self._show()

    async def _wait_for_turn(self) -> None:
        """Wait until a person moves the work order to `executing`, or until it has a seat in stage `triaged`.

        A reset to this wait moves the work order to `triaged`.
        """
        state, decisions = self._state, self._decisions
        await self._apply_reset()
        while state.task.status is Status.PENDING:
            if decisions.knows_of_reset:
                await self._apply_reset()
            elif not state.waits_for_its_turn:
                await workflow.wait_condition(
                    lambda: (
                        state.waits_for_its_turn
                        or state.task.status is not Status.PENDING
                        or decisions.knows_of_reset
                    )
                )
            elif await self._seat.take(
                self._order, state.task, lambda: state.waits_for_its_turn and not decisions.knows_of_reset
            ):
                state.start(workflow.now())
                self._show()

    async def _is_to_implement(self) -> bool:
        """Return whether to implement the plan; with `plan_only`, only if a reset has returned to this point."""
        return not self._order.plan_only or await self._decisions.apply_reset()

    async def _wait_for_approval(self) -> None:
        """If the input requires it, wait for a person's approval of the plan; after a rejection, plan again."""
        if not self._order.approve_plan:
            return
        while feedback := await self._plan_gate.wait_for_feedback():
            await self._take(Step.BUILD_PLAN, feedback=(f"a person rejected the plan: {feedback}",))
            await self._find_plan()

    async def _watch_pull_request(self) -> None:
        """Start a workflow that watches the pull request and outlives this workflow."""
        await watch_pull_request(self._state.task, self._hosts.here, self._follow())

    def _follow(self) -> Follow | None:
        """Return the input for the agent that follows the pull request; `None` if no agent follows it."""
        workspace, task = self._hosts.here, self._state.task
        terms = workspace.follow
        is_wanted = self._order.follow_pr or (terms is not None and terms.by_default)
        if not is_wanted or terms is None or self._order.pipeline is not None:
            return None
        sessions = [row.session_id for row in task.steps if row.step == Step.IMPLEMENT_PLAN]
        call = self._make_call(Step.IMPLEMENT_PLAN, 1, ())
        call = call.model_copy(update={"session_id": next(iter(sessions), None)})
        return Follow(call=call, terms=terms, url=task.pr_url or "")

    async def _report_outcome(self, steps: Coroutine[Any, Any, None]) -> None:
        """Run the steps, and close the work order with their outcome.

        The steps are a coroutine: the garbage collector could close a generator too early when a worker's cache
        drops the workflow.
        """
        self._decisions.watch()
        try:
            await steps
        except StepFailed as failed:
            raise self._close_as_failed(failed.as_task_error()) from failed
        except (ActivityError, asyncio.CancelledError) as error:
            if workflow.cancellation_reason() is not None:
                await self._end_cancelled(error)
            if block_error := self._decisions.block_error():
                await self._end_agent(error)
                raise self._close_as_failed(block_error, self._decisions.end_reason()[0]) from error
            if is_cancelled_exception(error):
                self._close(Status.CANCELLED, Stage.DONE)
                raise
            task_error, result = explain_failure(error)
            facts = failure_facts(error)
            self._notifications.learn_queue(facts.notifies_on)
            self._state.learn_title(facts.issue_title)
            if result is not None:
                self._state.end_step(result, self._attempt, workflow.now())
            raise self._close_as_failed(task_error) from error
        else:
            has_pull_request = self._state.task.pr_url is not None
            why = "" if has_pull_request else f"the plan {self._state.task.plan_path} is ready"
            self._close(Status.COMPLETED, Stage.REVIEW if has_pull_request else Stage.DONE, why=why)
        finally:
            if self._state.task.is_closed:  # else it leaves a worker's cache, and nothing can be awaited
                await self._leave()

    async def _leave(self) -> None:
        """Give back lane and seat, and wait until notifications, reports and updates have ended."""
        with suppress(asyncio.CancelledError):  # the work order is already closed
            await self._visit.leave(self._order, self._branch_and_snapshot(), task=self._state.task)
            await self._seat.give_back()
        await self._notifications.settle()
        if self._decisions.was_reset:
            await report_failure(self._state.task, self._order.tracker)
        await wait_despite_cancel(workflow.all_handlers_finished)

    async def _end_cancelled(self, cause: BaseException) -> None:
        """End the agent, close the work order as cancelled, and raise the cancel again."""
        error = await self._end_agent(cause)
        who, why = self._decisions.end_reason()
        self._close(Status.CANCELLED, Stage.DONE, error, who=who, why=why)
        raise asyncio.CancelledError from cause

    async def _end_agent(self, cause: BaseException) -> TaskError | None:
        """End the agent unless its step has ended it; return an error if that fails, else `None`.

        This does not wait for a gone or silent host: that host's next worker ends the agent.
        """
        call, is_left = self._call_under_way, self._state.waits_for_host or self._hosts.is_silent
        if call is None or is_left or isinstance(cause, AgentEnded):
            return None
        try:
            result = await self._steps.end(place_call(call, self._hosts.here))
        except AgentLeft:
            return None
        except ActivityError as failed:
            return explain_failure(failed)[0]
        self._state.end_work(result, self._attempt, workflow.now())
        return None

    def _close_as_failed(self, error: TaskError, who: str = "") -> ApplicationError:
        self._close(Status.FAILED, Stage.BLOCKED, error, who=who)
        error = error.of(self._state.task.id)
        message = f"{error.message} {error.remedy}".strip()
        return ApplicationError(message, self._state.task, type=error.type, non_retryable=True)

    def _close(
        self, status: Status, stage: Stage, error: TaskError | None = None, *, who: str = "", why: str = ""
    ) -> None:
        self._state.close(status, stage, workflow.now(), error, who=who, why=why)
        self._show()
