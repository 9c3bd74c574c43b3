"""The work order: one issue on its way to a pull request."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.build_plan import BuildPlan
    from activities.classify_issue import ClassifyIssue
    from activities.create_commit import CreateCommit
    from activities.create_pull_request import CreatePullRequest
    from activities.find_plan_file import FindPlanFile
    from activities.generate_branch import GenerateBranch
    from activities.implement_plan import ImplementPlan
    from activities.workspaces import Workspaces
    from septet.contracts.limits import StepSettings
    from septet.contracts.names import Stage, Status, Verdict
    from septet.contracts.order import WorkOrderInput
    from septet.contracts.pipeline import Outline, Role
    from septet.contracts.row import waits_in
    from septet.contracts.steps import OpenWorkspace, StepCall, StepResult, Workspace
    from septet.contracts.task import Task, TaskError
    from workflows._asked import Asked
    from workflows._failures import AgentEnded, StepFailed, explained
    from workflows._hosts import placed
    from workflows._ids import ActivityIds
    from workflows._input import checked_input, takes_raw_input
    from workflows._policies import WORKSPACE_OPTIONS, priority_of
    from workflows._stay import Stay
    from workflows._steps import StepActivity, end_work, take_step
    from workflows._watch import watch_pull_request


_PLAN_GATE: Final = "plan-gate"
"""Before it, no plan was waited with."""
_BOARD: Final = "board"
"""Before it, a work order that comes after others began at once."""
_WATCH: Final = "watches-pull-request"
"""Before it, nobody saw what became of a pull request."""


@workflow.defn(name="WorkOrder")
class WorkOrder(Asked):
    """Seven steps with a coding agent, each proven before the next one begins."""

    def __init__(self) -> None:
        """Begin with nothing known; the input is read in `run`, where a wrong one can be refused."""
        super().__init__()
        self._order: WorkOrderInput
        self._checkpoint = ""
        self._attempt = 1
        self._outline: Outline | None = None
        self._call_under_way: StepCall | None = None
        self._ids = ActivityIds()

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> Task:
        """Classify, plan, find the plan, branch, implement, commit, open the pull request."""
        self._accept(order, rest)
        async with self._told_to_the_end():
            await self._wait_for_its_turn()
            await self._open_workspace()
            await self._take(ClassifyIssue)
            await self._take(BuildPlan)
            await self._find_the_plan()
            await self._have_the_plan_approved()
            await self._hand_over()
            await self._name_the_branch()
            await self._take(ImplementPlan)
            await self._take(CreateCommit)
            await self._take(CreatePullRequest)
            await self._have_it_watched()
        return self._story.task

    def _accept(self, order: RawValue | None, rest: tuple[object, ...]) -> None:
        self._order = checked_input(workflow.info().workflow_id, order, rest, WorkOrderInput)
        waits = _waits_in(self._order)
        self._story.begin(workflow.info().workflow_id, self._order, workflow.info().start_time, waits)
        self._tell()

    async def _wait_for_its_turn(self) -> None:
        """Wait on the board, in a stage that people choose; a triaged one begins as soon as it has a seat."""
        story = self._story
        await self._moves.heed()
        while story.task.status is Status.PENDING:
            if not story.waits_for_its_turn:
                await workflow.wait_condition(
                    lambda: story.waits_for_its_turn or story.task.status is not Status.PENDING
                )
            elif await self._seat.taken(self._order, story.task, lambda: story.waits_for_its_turn):
                story.starts(workflow.now())
                self._tell()

    async def _open_workspace(self) -> None:
        """Open a workspace of its own; in a pipeline, enter the planner's."""
        if self._order.pipeline is not None:
            await self._stay.given(Role.PLANNER)
            await self._enter_lane()
        else:
            await self._open_own(self._opening())

    async def _open_own(self, opening: OpenWorkspace, queue: str | None = None) -> None:
        self._opened(
            await workflow.execute_activity_method(
                Workspaces.open_workspace,
                opening,
                task_queue=queue,
                activity_id=self._ids.of("open_workspace"),
                summary=f"workspace for {self._order.repository}",
                priority=priority_of(self._story.task),
                **WORKSPACE_OPTIONS,
            )
        )

    async def _heed(self) -> None:
        """Begin with what people have said; one of a pipeline that a reset takes up goes on outside of it.

        The lane in which it was may be another work order's by now: it goes on in a workspace of its own, from the
        checkpoint that it had.
        """
        await self._moves.heed()
        if self._order.pipeline is None or not self._moves.was_reset:
            return
        self._order = self._order.model_copy(update={"pipeline": None})
        self._stay = Stay()
        if self._hosts.workspace is not None:
            lane = self._hosts.workspace
            opening = self._opening().model_copy(update={"restores": self._checkpoint, "agent": lane.agent})
            await self._open_own(opening, lane.task_queue)

    async def _enter_lane(self, plan: tuple[str, str] | None = None) -> None:
        await self._heed()
        if self._order.pipeline is not None:
            self._opened(await self._stay.enter(self._opening(), self._ids.of("enter_lane"), plan))

    def _opening(self) -> OpenWorkspace:
        order = self._order
        return OpenWorkspace(
            work_order_id=workflow.info().workflow_id,
            repository=order.repository,
            issue=order.issue,
            title=order.title,
            description=order.description,
            base=order.base,
            agent=order.agent,
            first_run_id=workflow.info().first_execution_run_id,
        )

    def _opened(self, workspace: Workspace) -> None:
        self._hosts.workspace = workspace
        self._checkpoint = workspace.checkpoint
        self._story.opened(workspace, workflow.now())
        self._tell()

    async def _find_the_plan(self) -> None:
        """Find the plan's file; where there is none, plan once more."""
        if (await self._take(FindPlanFile)).result_text != "0":
            return
        await self._take(BuildPlan, said=("the plan's file was not found in the worktree",))
        if (await self._take(FindPlanFile)).result_text == "0":
            raise StepFailed(FindPlanFile.step, ("there is no plan's file, also after a second plan",))

    async def _have_the_plan_approved(self) -> None:
        """Wait for a person's word on the plan, where that is asked; one that is rejected is planned again."""
        if not (self._order.approve_plan and workflow.patched(_PLAN_GATE)):
            return
        while feedback := await self._gate.feedback():
            await self._take(BuildPlan, said=(f"a person rejected the plan: {feedback}",))
            await self._find_the_plan()

    async def _hand_over(self) -> None:
        """In a pipeline, pass the plan on to an executor; where a person wants another one, plan again first."""
        await self._heed()
        if self._order.pipeline is None:
            return
        await self._pass_on()
        while wanted := await self._stay.wanted_otherwise():
            await self._enter_lane()
            await self._take(BuildPlan, said=(f"a person wants another plan: {wanted}",))
            await self._find_the_plan()
            await self._pass_on()
        await self._enter_lane((self._checkpoint, self._story.progress.plan_path or ""))

    async def _name_the_branch(self) -> None:
        """Have a branch named, but where a pipeline keeps to one."""
        await self._heed()
        if branch := self._stay.branch:
            self._story.keeps_to(branch, workflow.now())
            self._tell()
        else:
            await self._take(GenerateBranch)

    async def _pass_on(self) -> None:
        """Leave the planner's lane with the plan."""
        self._call_under_way = None
        plan = self._story.planned(workflow.now())
        await self._stay.leave(self._order, outline=self._outline, plan=plan)

    async def _take(self, activity: type[StepActivity], said: tuple[str, ...] = ()) -> StepResult:
        """Take a step, with what was said before; one that is not accepted is tried once more, and told why."""
        await self._heed()
        said = said or self._moves.feedback()
        reasons: tuple[str, ...] = ()
        for attempt in (1, 2):
            self._attempt = attempt
            self._story.step_begins(activity.step, workflow.now())
            self._tell()
            self._call_under_way = self._call(activity, attempt, said + reasons)
            result = await take_step(
                activity, self._call_under_way, self._hosts, self._ids, priority_of(self._story.task)
            )
            self._story.step_ended(result, attempt, workflow.now())
            self._stay.heard(result, self._hosts.here)
            self._tell()
            if result.verdict is Verdict.DONE:
                break
            if result.verdict is Verdict.CANCELLED:
                raise AgentEnded
            reasons = result.reasons
        else:
            raise StepFailed(activity.step, reasons)
        self._checkpoint = result.checkpoint or self._checkpoint
        self._outline = result.outline or self._outline
        if self._order.pipeline is not None and activity is ImplementPlan:
            await self._stay.changed(self._order, result, self._story.progress.plan_path)
        return result

    async def _have_it_watched(self) -> None:
        """Let the pull request be watched from now on, by a workflow that outlives this one."""
        if workflow.patched(_WATCH):
            await watch_pull_request(self._story.task, self._hosts.here)

    def _call(self, activity: type[StepActivity], attempt: int, reasons: tuple[str, ...]) -> StepCall:
        settings = self._order.steps.get(activity.step, StepSettings())
        return StepCall(
            step=activity.step,
            workspace=self._hosts.here,
            progress=self._story.progress,
            attempt=attempt,
            reasons=reasons,
            starts_from=self._checkpoint,
            model=self._order.model,
            limits=settings.over(self._order.timeouts),
            settings=settings,
            draft=self._order.draft,
            labels=self._order.labels,
            pipeline=self._order.pipeline or "",
            session_id=self._stay.session_id,
        )

    @asynccontextmanager
    async def _told_to_the_end(self) -> AsyncIterator[None]:
        """Let the story end with the truth, however the steps end; who asked for a move is answered first."""
        self._moves.watch()
        try:
            yield
        except StepFailed as failed:
            raise self._failed(failed.error()) from failed
        except (ActivityError, asyncio.CancelledError) as error:
            if workflow.cancellation_reason() is not None:
                await self._end_cancelled(error)
            if blocked := self._moves.blocked():
                await self._end_agent(error)
                raise self._failed(blocked, self._moves.ended_by()[0]) from error
            if is_cancelled_exception(error):
                self._close(Status.CANCELLED, Stage.DONE)
                raise
            task_error, result = explained(error)
            if result is not None:
                self._story.step_ended(result, self._attempt, workflow.now())
            raise self._failed(task_error) from error
        else:
            self._close(Status.COMPLETED, Stage.REVIEW)
        finally:
            if self._story.task.is_closed:  # else it leaves a worker's cache, and nothing can be awaited
                await self._leave()

    async def _leave(self) -> None:
        """Give the seat back, and let those who asked for something have their answer."""
        with suppress(asyncio.CancelledError):  # it has closed in its own words already
            await self._stay.leave(self._order, self._done_at())
            await self._seat.left()
        while not workflow.all_handlers_finished():
            with suppress(asyncio.CancelledError):
                await workflow.wait_condition(workflow.all_handlers_finished)

    def _done_at(self) -> tuple[str, str]:
        """Return the branch and the last snapshot of a work order that is completed; nothing of another."""
        task = self._story.task
        return (task.branch_name or "", self._checkpoint) if task.status is Status.COMPLETED else ("", "")

    async def _end_cancelled(self, cause: BaseException) -> None:
        """Close as cancelled, once its agent has ended.

        Raises:
            asyncio.CancelledError: The work order is closed.
        """
        error = await self._end_agent(cause)
        who, why = self._moves.ended_by()
        self._close(Status.CANCELLED, Stage.DONE, error, who=who, why=why)
        raise asyncio.CancelledError from cause

    async def _end_agent(self, cause: BaseException) -> TaskError | None:
        """See that no agent works any more, and return what went wrong; its step may have seen to it already.

        A host that is gone is not waited for: its next worker ends what it finds there.
        """
        call, ended = self._call_under_way, isinstance(cause, AgentEnded)
        if call is None or ended or self._story.waits_for_host:
            return None
        try:
            result = await end_work(placed(call, self._hosts.here))
        except ActivityError as failed:
            return explained(failed)[0]
        self._story.work_ended(result, self._attempt, workflow.now())
        return None

    def _failed(self, error: TaskError, who: str = "") -> ApplicationError:
        self._close(Status.FAILED, Stage.BLOCKED, error, who=who)
        message = f"{error.message} {error.remedy}".strip()
        return ApplicationError(message, self._story.task, type=error.type, non_retryable=True)

    def _close(
        self, status: Status, stage: Stage, error: TaskError | None = None, *, who: str = "", why: str = ""
    ) -> None:
        self._story.ended(status, stage, workflow.now(), error, who=who, why=why)
        self._tell()


def _waits_in(order: WorkOrderInput) -> Stage | None:
    """Return the stage in which it waits; before there was a board, one that came after others did not wait."""
    return waits_in(order) if order.stage is not None or (order.after and workflow.patched(_BOARD)) else None
