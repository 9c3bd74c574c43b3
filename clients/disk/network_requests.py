"""What the agents and checks of a work order asked of the network, from the files of this host."""

from collections.abc import Iterable
from typing import Final

from clients.disk.runs import started_runs
from septet.agents.runs.folders import Run
from septet.agents.runs.network import NetworkLine, network_lines
from septet.contracts.replies import AgentRun, NetworkReply, NetworkRequest
from septet.state import StateDir
from septet.system.preview import scrub

REQUESTS_AT_ONCE: Final = 1000


def network_of(
    state: StateDir, order_id: str, *, offset: int = 0, limit: int | None = REQUESTS_AT_ONCE
) -> NetworkReply:
    """Return what was asked for, run by run, oldest first; nothing on a host that has no runs of the work order.

    Args:
        state: This host's.
        order_id: The work order.
        offset: How many requests to leave out.
        limit: The most to return; `None` for all.

    Raises:
        InvalidInputError: No work order can have that id.
    """
    lines = [(run, line) for run in started_runs(state, order_id) for line in network_lines(run)]
    asked = [(run, line) for run, line in lines if not line.more]
    shown = asked[offset:] if limit is None else asked[offset : offset + limit]
    requests = tuple(_request(run, line) for run, line in shown)
    return NetworkReply(requests=requests, total=len(asked), is_cut=len(asked) != len(lines))


def refused_to(runs: Iterable[AgentRun]) -> tuple[str, ...]:
    """Return the hosts that runs were refused, each once."""
    return tuple(dict.fromkeys(name for run in runs for name in run.refused_hosts))


def _request(run: Run, line: NetworkLine) -> NetworkRequest:
    return NetworkRequest(
        run=run.folder.name,
        step=run.record.step if run.record is not None else "",
        of_check=line.of_check,
        asked_at=line.time,
        host=scrub(line.host),
        port=line.port,
        allowed=line.allowed,
        why=scrub(line.why),
        sent_bytes=line.sent_bytes,
        received_bytes=line.received_bytes,
        seconds=line.seconds,
    )
