"""A workflow with a work order as its child, as a pipeline has."""

from typing import Any

from temporalio import workflow


@workflow.defn(name="Parent")
class Parent:
    """Waits for its child."""

    @workflow.run
    async def run(self, order: dict[str, Any]) -> None:
        await workflow.execute_child_workflow("WorkOrder", order, id=f"{workflow.info().workflow_id}-child")
