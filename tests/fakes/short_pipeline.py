"""Pipelines with short runs and narrow windows, so that few issues show what happens to many."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from septet.contracts.pipeline_view import PipelineView
    from workflows.wire.run_input import takes_raw_input
from workflows.pipeline import Pipeline
from workflows.pipeline.orders import WindowLimits


@workflow.defn(name="Pipeline")
class ShortPipeline(Pipeline):
    """It goes on in another run after two issues."""

    window_limits = WindowLimits(issues_of_a_run=2)

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> PipelineView:
        """Carry out the issues."""
        return await super().run(order, *rest)


@workflow.defn(name="Pipeline")
class NarrowPipeline(Pipeline):
    """It has two work orders open at a time."""

    window_limits = WindowLimits(open_orders=2)

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> PipelineView:
        """Carry out the issues."""
        return await super().run(order, *rest)


@workflow.defn(name="Pipeline")
class ImpatientPipeline(Pipeline):
    """It goes on in another run after two issues, and hardly waits for it."""

    window_limits = WindowLimits(issues_of_a_run=2, patience=timedelta(milliseconds=200))

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> PipelineView:
        """Carry out the issues."""
        return await super().run(order, *rest)
