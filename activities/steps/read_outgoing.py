"""Before each push, if the settings want it, let a second agent read the outgoing content."""

from dataclasses import dataclass

from temporalio import activity

from activities.outgoing.reading import is_here
from activities.steps.step_runner import StepRunner
from septet.contracts.names import Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.system.threads import shielded_thread


@dataclass(frozen=True, slots=True)
class ReadOutgoing:
    """`findings` of the result are the reader's suspicions."""

    runner: StepRunner

    @activity.defn(name="read_outgoing")
    async def run(self, call: StepCall) -> StepResult:
        """Run the reader. Idempotent: a finished run is read again. Leaves the run's files on disk."""
        host = self.runner.host
        if not await shielded_thread(host.threads.disk, is_here, host, call):
            reasons = ("The work to read is on another host.",)
            return StepResult(step=call.step, verdict=Verdict.UNPROVEN, reasons=reasons)
        return await self.runner.run(call)
