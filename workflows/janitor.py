"""One pass of the janitor over one host; a schedule starts the pass."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from septet.contracts.steps import SweepCall
    from septet.janitor.terms import SweepReport
    from workflows.wire.activity_stubs import SWEEP_HOST

_HOST_ANSWERS_WITHIN: Final = timedelta(hours=1)
"""The longest wait for a host that is busy or gone; the next pass tries again."""
_SHOWN: Final = 20


@workflow.defn(name="Janitor")
class Janitor:
    """One pass of the janitor over one host, and its report."""

    @workflow.run
    async def run(self, task_queue: str) -> SweepReport:
        """Run the janitor on the host of a task queue, and return its report."""
        try:
            swept = await SWEEP_HOST.start(
                SweepCall(server_now=workflow.now()),
                task_queue=task_queue,
                schedule_to_start_timeout=_HOST_ANSWERS_WITHIN,
                start_to_close_timeout=timedelta(hours=1),
                heartbeat_timeout=timedelta(seconds=60),
                retry_policy=RetryPolicy(maximum_attempts=3),
                summary="what was kept long enough",
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            swept = SweepReport(note=f"The host was not swept: {error.cause or error}")
        workflow.set_current_details(format_details(swept))
        return swept


def format_details(swept: SweepReport) -> str:
    """Return the report of a pass as Markdown, for the web UI."""
    counts = f"{swept.removed_count} removed, {swept.refused_count} due but kept, {swept.kept_count} not due"
    lines = [f"**Host {swept.host or '?'}**: {counts}. {swept.note}".strip()]
    lines += [
        f"- removed {thing.kind} `{thing.name}` {_last_state(thing.snapshot)}".rstrip()
        for thing in swept.removed[:_SHOWN]
    ]
    lines += [f"- kept {thing.kind} `{thing.name}`: {thing.why}" for thing in swept.refused[:_SHOWN]]
    return "\n".join(lines)


def _last_state(snapshot: str | None) -> str:
    return f"(last state: `{snapshot}`)" if snapshot else ""
