"""A work order as somebody may change it without a thought of those that are under way: two steps are swapped."""

from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from septet.contracts.names import Step
    from septet.contracts.task import Task
    from workflows.wire.run_input import takes_raw_input
from workflows.work_order import WorkOrder


@workflow.defn(name="WorkOrder")
class SwappedWorkOrder(WorkOrder):
    """It plans before it classifies."""

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> Task:
        """Plan, classify."""
        self._accept(order, rest)
        await self._open_workspace()
        await self._take(Step.BUILD_PLAN)
        await self._take(Step.CLASSIFY_ISSUE)
        return self._state.task
