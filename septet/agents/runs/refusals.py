"""What is recorded of the hosts that an agent's sandbox refused it."""

from collections.abc import Iterator
from contextlib import contextmanager

from septet.agents.runs.folders import Run
from septet.agents.runs.network import refused_hosts
from septet.contracts.steps import StepCall
from septet.telemetry.metrics import PROXY_REFUSALS
from septet.telemetry.recorder import RECORDER


@contextmanager
def recording_refusals(call: StepCall, run: Run) -> Iterator[None]:
    """Record at the end of the block, in which its checks run, how many hosts a run was refused.

    Its logs are read only where metrics are served.
    """
    try:
        yield
    finally:
        if RECORDER.is_on and (hosts := refused_hosts(run)):
            RECORDER.record(PROXY_REFUSALS, len(hosts), step=call.name, agent=call.workspace.agent)
