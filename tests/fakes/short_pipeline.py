"""A pipeline whose runs are short, so that few issues show what happens to those of later runs."""

from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from septet.contracts.pipeline_view import PipelineView
    from workflows.run_input import takes_raw_input
from workflows.pipeline import Pipeline


@workflow.defn(name="Pipeline")
class ShortPipeline(Pipeline):
    """It goes on in another run after two issues."""

    issues_of_a_run = 2

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> PipelineView:
        """Carry out the issues."""
        return await super().run(order, *rest)
