"""A work order after a careless change: two steps are swapped without regard to running work orders."""

from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from septet.contracts.names import Step
    from septet.contracts.task import Task
    from workflows.wire.inputs import takes_raw_input
from workflows.work_order import WorkOrder


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
