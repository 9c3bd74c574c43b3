"""Carry out a work order: open its workspace or enter its pipeline's lanes, and run one step after the other."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

from septet.contracts.lanes import Role, SummariseCall
from septet.contracts.names import Status, Step, Verdict
from septet.contracts.order import StepSettings, WorkOrderInput
from septet.contracts.solution import Outline
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.workspace import OpenWorkspace, Workspace
from workflows.hosts.steps import ActivityIds, StepTaker
from workflows.wire.activity_stubs import OPEN_WORKSPACE
from workflows.wire.failures import AgentEnded, StepFailed
from workflows.wire.policies import OPENING_OPTIONS, priority_of
from workflows.work_order.handlers import WorkOrderHandlers
from workflows.work_order.lane_visit import LaneVisit, RoleSessions


class WorkOrderBase(WorkOrderHandlers):
    """Runs the steps of one work order, in its own workspace or in the lanes of its pipeline."""

    def __init__(self) -> None:
        """Begin empty: `run` reads the input, because `__init__` cannot refuse wrong input."""
        super().__init__()
        self._order: WorkOrderInput
        self._checkpoint = ""
        self._attempt = 1
        self._left_pipeline = ""
        self._outline: Outline | None = None
        self._call_under_way: StepCall | None = None
        self._went_back = False
        self._ids = ActivityIds()
        self._steps = StepTaker(self._hosts, self._ids, self._budget_gate)
        self._role_sessions = RoleSessions()

    async def _open_workspace(self) -> None:
        """Open the work order's own workspace, or enter the planner's lane of its pipeline."""
        if self._order.pipeline is not None:
            await self._visit.wait_for_lane(Role.PLANNER)
            await self._enter_lane()
            return None
        while True:
            try:
                return await self._open_own_workspace(self._make_opening())
            except ActivityError:
                if not await self._decisions.apply_reset():  # a retry resets to this place, and opens it anew
                    raise

    async def _find_plan(self) -> None:
        if (await self._take(Step.FIND_PLAN_FILE)).result_text != "0":
            return
        await self._take(Step.BUILD_PLAN, feedback=("the plan's file was not found in the worktree",))
        if (await self._take(Step.FIND_PLAN_FILE)).result_text == "0":
            raise StepFailed(Step.FIND_PLAN_FILE, ("there is no plan file, even after a second plan",))

    async def _hand_over_plan(self) -> None:
        """In a pipeline, wait for an executor's lane and enter it; until then, plan again if a person wants it."""
        await self._apply_reset()
        if self._order.pipeline is None:
            return
        await self._leave_planner()
        while reason := await self._visit.wait_for_executor():
            await self._enter_lane()
            await self._take(Step.BUILD_PLAN, feedback=(f"a person asks for another plan: {reason}",))
            await self._find_plan()
            await self._leave_planner()
        await self._enter_lane((self._checkpoint, self._state.progress.plan_path or ""))

    async def _name_branch(self) -> None:
        """Run the step that names the branch, or use the pipeline's one branch."""
        await self._apply_reset()
        if branch := self._visit.branch:
            self._state.keep_to_branch(branch, workflow.now())
            self._show()
        else:
            await self._take(Step.GENERATE_BRANCH)

    async def _take(self, step: Step, feedback: tuple[str, ...] = ()) -> StepResult:
        """Run a step with feedback until its answer is accepted, and return the result.

        If the work has findings, this waits for a person's decision. If an earlier step's work must change first,
        this repeats the earlier step in its session.
        """
        await self._apply_reset()
        gate = self._findings_gate
        result = await self._try_twice(step, feedback or self._decisions.take_feedback())
        while result.verdict is not Verdict.DONE:
            if result.goes_back_to is not None and not self._went_back:
                result = await self._go_back(step, result)
                continue
            if not result.findings:
                raise StepFailed(step, result.reasons)
            words = (await gate.wait_for_words(result.findings),)
            if gate.rejects and step is Step.CREATE_PULL_REQUEST:  # the push sends its commit
                await self._take(Step.CREATE_COMMIT, words)
            result = await self._try_twice(step, words, first_attempt=2)
        self._checkpoint = result.checkpoint or self._checkpoint
        self._outline = result.outline or self._outline
        if self._order.pipeline is not None and step is Step.IMPLEMENT_PLAN:
            await self._visit.report_changes(self._order, result, self._state.progress.plan_path)
        return result

    async def _go_back(self, step: Step, result: StepResult) -> StepResult:
        """Repeat the step that `result` names, then `create_commit`, then `step`; return the result of `step`."""
        self._went_back = True
        self._checkpoint = result.checkpoint or self._checkpoint
        if result.goes_back_to is not None:
            await self._take(result.goes_back_to, result.reasons)
        await self._take(Step.CREATE_COMMIT)
        return await self._try_twice(step, ())

    async def _try_twice(self, step: Step, feedback: tuple[str, ...], first_attempt: int = 1) -> StepResult:
        """Try a step; if the try fails, try the step once more with the reasons. Return the last result.

        A failure that only a person can resolve has no second try.
        """
        reasons: tuple[str, ...] = ()
        for attempt in (first_attempt, 2):
            self._attempt = attempt
            self._state.begin_step(step, workflow.now())
            self._show()
            self._call_under_way = self._make_call(step, attempt, feedback + reasons)
            result = await self._steps.take(self._call_under_way, priority_of(self._state.task, step))
            self._state.end_step(result, attempt, workflow.now())
            self._visit.follow_session(result)
            self._role_sessions.follow(self._call_under_way, result)
            self._show()
            if result.verdict is Verdict.DONE or result.is_a_persons or result.goes_back_to is not None:
                break
            if result.unread:
                break
            if result.verdict is Verdict.CANCELLED:
                raise AgentEnded
            reasons = result.reasons
        return result

    async def _apply_reset(self) -> None:
        """Prepare to continue after a reset.

        A work order of a pipeline leaves its lane, because another work order may have the lane. It continues in
        its own workspace, from its last checkpoint.
        """
        if await self._decisions.apply_reset():
            self._role_sessions.forget()
        if self._order.pipeline is None or not self._decisions.was_reset:
            return
        self._left_pipeline = self._order.pipeline
        self._order = self._order.model_copy(update={"pipeline": None})
        self._decisions.is_in_pipeline = False
        self._visit = LaneVisit(self._hosts)
        if self._hosts.workspace is not None:
            lane = self._hosts.workspace
            opening = self._make_opening().model_copy(update={"restores": self._checkpoint, "agent": lane.agent})
            await self._open_own_workspace(opening, lane.task_queue, lane)

    async def _enter_lane(self, plan: tuple[str, str] | None = None) -> None:
        await self._apply_reset()
        if self._order.pipeline is not None:
            self._take_in_workspace(await self._visit.enter(self._make_opening(), self._ids, plan))
            if self._visit.is_too_long:
                call = SummariseCall(
                    workspace=self._hosts.here,
                    pipeline=self._order.pipeline or "",
                    session_id=self._visit.session_id or "",
                    model=self._order.model,
                    limits=self._order.timeouts,
                    project=self._state.task.project,
                    budget=self._order.budget or "",
                    pipeline_budget=self._order.pipeline_budget or "",
                )
                summary = await self._visit.begin_anew(call, self._ids.of("summarise_session"))
                self._state.take_in_summary(summary, workflow.now())

    async def _open_own_workspace(
        self, opening: OpenWorkspace, queue: str | None = None, lane: Workspace | None = None
    ) -> None:
        """Open the work order's own workspace; after work in a lane, remember on which commit that work began."""
        workspace = await OPEN_WORKSPACE.start(
            opening,
            task_queue=queue,
            activity_id=self._ids.of("open_workspace"),
            summary=f"workspace for {self._order.repository}",
            priority=priority_of(self._state.task),
            **OPENING_OPTIONS,
        )
        if lane is not None:
            planned_from = lane.planned_from or lane.checkpoint
            update = {"began_at": lane.began_at, "lacks": lane.lacks, "planned_from": planned_from}
            workspace = workspace.model_copy(update=update)
        self._take_in_workspace(workspace)

    def _make_opening(self) -> OpenWorkspace:
        order = self._order
        return OpenWorkspace(
            work_order_id=workflow.info().workflow_id,
            repository=order.repository,
            issue=order.issue,
            title=order.title,
            description=order.description,
            base=order.base,
            push_to=order.push_to,
            agent=order.agent,
            fallback_agent=order.fallback_agent,
            sessions=order.sessions,
            first_run_id=workflow.info().first_execution_run_id,
            tracker=order.tracker,
            requested=order.requested,
        )

    def _take_in_workspace(self, workspace: Workspace) -> None:
        self._hosts.workspace = workspace
        self._checkpoint = workspace.checkpoint
        self._state.take_in_workspace(workspace, workflow.now())
        self._show()

    async def _leave_planner(self) -> None:
        self._call_under_way = None
        plan = self._state.planning_outcome(workflow.now())
        await self._visit.leave(self._order, task=self._state.task, outline=self._outline, plan=plan)

    def _branch_and_snapshot(self) -> tuple[str, str]:
        """Return the branch and the last snapshot of a completed work order; else two empty texts."""
        task = self._state.task
        return (task.branch_name or "", self._checkpoint) if task.status is Status.COMPLETED else ("", "")

    def _session_again(self, step: Step) -> str | None:
        rows = self._state.task.steps if self._went_back and step is Step.IMPLEMENT_PLAN else ()
        return next((row.session_id for row in reversed(rows) if row.step == step), None)

    def _make_call(self, step: Step, attempt: int, reasons: tuple[str, ...]) -> StepCall:
        settings = self._order.steps.get(step, StepSettings())
        return StepCall(
            step=step,
            workspace=self._hosts.here,
            progress=self._state.progress,
            attempt=attempt,
            reasons=reasons,
            starts_from=self._checkpoint,
            model=self._order.model,
            limits=settings.over(self._order.timeouts),
            settings=settings,
            draft=self._order.draft,
            labels=self._order.labels,
            pipeline=self._order.pipeline or "",
            session_id=self._visit.session_id or self._role_sessions.session_of(step) or self._session_again(step),
            approve_plan=self._order.approve_plan,
            plan_comment=self._order.plan_comment,
            allowed_findings=self._findings_gate.allowed,
            project=self._state.task.project,
            budget=self._order.budget or "",
            pipeline_budget=self._order.pipeline_budget or "",
            pays_from=self._left_pipeline,
            waits_for_budget=True,
        )
