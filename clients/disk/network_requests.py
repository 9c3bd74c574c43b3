"""Read the network requests of a work order's set-up, agents and checks from this host's files."""

from collections.abc import Iterable, Iterator

from clients.disk.runs import MOST_REFUSED, lanes_of, started_runs
from septet.agents.runs.folders import SETUP_FOLDER, Run
from septet.agents.runs.logs import NetworkLine, lines_of_commands, network_lines, refused_in
from septet.contracts.replies import NetworkReply
from septet.contracts.views import AgentRun, NetworkRequest
from septet.state import StateDir
from septet.system.preview import scrub


def network_of(state: StateDir, order_id: str, *, offset: int = 0, limit: int | None = None) -> NetworkReply:
    """Return the network requests of set-up, then of each run, oldest first; empty on a host without the runs.

    Args:
        state: The state directory of this host.
        order_id: The work order.
        offset: The number of requests to skip.
        limit: The most requests to return; `None` for all.

    Raises:
        InvalidInputError: No work order can have that id.
    """
    lines: list[tuple[Run | None, NetworkLine]] = [(None, line) for line in _setup_lines(state, order_id)]
    lines += [(run, line) for run in started_runs(state, order_id) for line in network_lines(run)]
    shown = lines[offset:] if limit is None else lines[offset : offset + limit]
    requests = tuple(_request(run, line) for run, line in shown)
    return NetworkReply(requests=requests, total=len(lines), is_cut=any(line.count > 1 for _, line in lines))


def refused_in_setup(state: StateDir, order_id: str) -> tuple[str, ...]:
    """Return the hosts that were refused to the workspace's set-up, each once."""
    return tuple(scrub(name) for name in refused_in(_setup_lines(state, order_id))[:MOST_REFUSED])


def refused_to(in_setup: Iterable[str], runs: Iterable[AgentRun]) -> tuple[str, ...]:
    """Return the hosts that were refused to set-up and runs, each once."""
    return tuple(dict.fromkeys((*in_setup, *(name for run in runs for name in run.refused_hosts))))


def _setup_lines(state: StateDir, order_id: str) -> Iterator[NetworkLine]:
    """Yield the network requests of the set-up of a work order's workspace and lanes."""
    for place_id in (order_id, *lanes_of(state, order_id)):
        yield from lines_of_commands(state.runs / place_id / SETUP_FOLDER)


def _request(run: Run | None, line: NetworkLine) -> NetworkRequest:
    record = run.record if run is not None else None
    return NetworkRequest(
        run=run.folder.name if run is not None else SETUP_FOLDER,
        step=record.step if record is not None else "",
        of_check=line.of_check,
        asked_at=line.time,
        host=scrub(line.host),
        port=line.port,
        allowed=line.allowed,
        why=scrub(line.why),
        request=scrub(line.request),
        count=line.count,
        sent_bytes=line.sent_bytes,
        received_bytes=line.received_bytes,
        seconds=line.seconds,
    )
