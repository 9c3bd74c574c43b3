"""What is recorded of the hosts that an agent's sandbox refused it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from septet.agents.runs.network import refused_hosts
from septet.agents.runs.run import Run
from septet.contracts.steps import StepCall
from septet.telemetry.metrics import PROXY_REFUSALS
from septet.telemetry.recorder import RECORDER

_FILE: Final = "counted_refusals.json"
"""Beside a run: the hosts that were recorded, as a list of `name:port`."""


@contextmanager
def recording_refusals(call: StepCall, run: Run) -> Iterator[None]:
    """Record at the end of the block, in which its checks run, how many hosts a run was refused."""
    try:
        yield
    finally:
        record_refusals(call, run)


def record_refusals(call: StepCall, run: Run) -> None:
    """Record how many hosts a run and its checks were refused, each once, however often the run is settled.

    Its logs are read only where metrics are served. Where the note cannot be written, they count again.
    """
    if not RECORDER.is_on:
        return
    counted = _read_counted(run)
    new = [host for host in refused_hosts(run) if host not in counted]
    if new:
        agent = run.record.agent if run.record is not None else call.workspace.agent
        RECORDER.record(PROXY_REFUSALS, len(new), step=call.name, agent=agent)
        with suppress(OSError):
            run.put(_FILE, json.dumps([*counted, *new]).encode())


def _read_counted(run: Run) -> list[str]:
    try:
        hosts: list[str] = json.loads((run.folder / _FILE).read_bytes())
    except (OSError, ValueError):
        return []
    return hosts
