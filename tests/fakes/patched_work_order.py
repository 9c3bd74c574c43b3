"""Work orders of a later version with two swapped steps: one has a patch for running work orders, one has none."""

from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from septet.contracts.names import Step
    from septet.contracts.task import Task
    from workflows.wire.inputs import takes_raw_input
from workflows.work_order.workflow import WorkOrder


@workflow.defn(name="WorkOrder")
class PatchedWorkOrder(WorkOrder):
    """Plans before it classifies, unless its history began otherwise."""

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> Task:
        self._accept(order, rest)
        await self._report_outcome(self._carry_out_steps())
        return self._state.task

    async def _carry_out_steps(self) -> None:
        await self._wait_for_turn()
        await self._open_workspace()
        first, second = Step.CLASSIFY_ISSUE, Step.BUILD_PLAN
        if workflow.patched("plan-first"):
            first, second = Step.BUILD_PLAN, Step.CLASSIFY_ISSUE
        await self._take(first)
        await self._take(second)
        await self._find_plan()
        if await self._is_to_implement():
            await self._wait_for_approval()
            await self._take(Step.GENERATE_BRANCH)
            await self._take(Step.IMPLEMENT_PLAN)
            await self._take(Step.CREATE_COMMIT)
            await self._take(Step.CREATE_PULL_REQUEST)
            await self._watch_pull_request()


@workflow.defn(name="WorkOrder")
class SwappedWorkOrder(WorkOrder):
    """Plans before it classifies."""

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> Task:
        self._accept(order, rest)
        await self._open_workspace()
        await self._take(Step.BUILD_PLAN)
        await self._take(Step.CLASSIFY_ISSUE)
        return self._state.task
