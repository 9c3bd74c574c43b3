"""What is recorded of the hosts that an agent's sandbox refused it."""

from septet.agents.runs.folders import Run
from septet.agents.runs.network import refused_hosts
from septet.contracts.steps import StepCall
from septet.telemetry.metrics import PROXY_REFUSALS
from septet.telemetry.recorder import RECORDER


def record_refusals(call: StepCall, run: Run) -> None:
    """Record how many hosts a run was refused; its log is read only where metrics are served."""
    if RECORDER.is_on and (hosts := refused_hosts(run)):
        RECORDER.record(PROXY_REFUSALS, len(hosts), step=call.name, agent=call.workspace.agent)
