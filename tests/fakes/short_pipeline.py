"""Pipelines with short runs and narrow windows, so that few issues show the behaviour of many."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from septet.pipelines.views import PipelineView
    from workflows.wire.inputs import takes_raw_input
from workflows.pipeline.orders import WindowLimits
from workflows.pipeline.workflow import Pipeline


@workflow.defn(name="Pipeline")
class ShortPipeline(Pipeline):
    """Continues in another run after two issues."""

    window_limits = WindowLimits(issues_of_a_run=2)

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> PipelineView:
        return await super().run(order, *rest)


@workflow.defn(name="Pipeline")
class NarrowPipeline(Pipeline):
    """Has at most two open work orders."""

    window_limits = WindowLimits(open_orders=2)

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> PipelineView:
        return await super().run(order, *rest)


@workflow.defn(name="Pipeline")
class ImpatientPipeline(Pipeline):
    """Continues in another run after two issues, and hardly waits before it."""

    window_limits = WindowLimits(issues_of_a_run=2, patience=timedelta(milliseconds=200))

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> PipelineView:
        return await super().run(order, *rest)
