"""Find a work order's agent runs on this host, also in lanes, and the network requests of these runs."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from septet.agents.runs.folders import SETUP_FOLDER, Run, Runs
from septet.agents.runs.logs import NetworkLine, lines_of_commands, network_lines, refused_hosts, refused_in
from septet.contracts.host_files import AgentRun, NetworkRequest
from septet.contracts.replies import NetworkReply
from septet.janitor.terms import pipeline_of
from septet.state import StateDir
from septet.system.masking import scrub

MOST_REFUSED: Final = 100
"""The most refused network addresses in an `AgentRun`; the run's log has all of them."""
_REMEMBERED: Final = 50_000
"""The most runs in the cache. A lane has seven runs for each issue of a pipeline, and is read twice a second."""


class _Key(msgspec.Struct, frozen=True):
    workflow_id: str


class _Mark(msgspec.Struct, frozen=True):
    """The work order, number and start of a run, from the run's record."""

    key: _Key
    serial: int
    started_at: str


def runs_of(state: StateDir, order_id: str) -> tuple[AgentRun, ...]:
    """Return a work order's agent runs that are on this host, oldest first.

    Raises:
        InvalidInputError: The work order's id is invalid.
    """
    return tuple(map(_agent_run, started_runs(state, order_id)))


def started_runs(state: StateDir, order_id: str) -> list[Run]:
    """Return a work order's runs with a readable record, oldest first.

    Raises:
        InvalidInputError: The work order's id is invalid.
    """
    return [run for run in runs_everywhere(state, order_id) if run.record is not None]


def runs_everywhere(state: StateDir, order_id: str) -> list[Run]:
    """Return a work order's runs in the work order's own workspace and in lanes, oldest first.

    Raises:
        InvalidInputError: The work order's id is invalid.
    """
    runs = Runs(state.runs)
    own_runs = runs.of(order_id)
    in_lanes = []
    for lane in lanes_of(state, order_id):
        marks = _marks(state, lane)
        numbered = sorted((mark.serial, folder) for folder, mark in marks if mark.key.workflow_id == order_id)
        in_lanes += [runs.at(folder) for _, folder in numbered]
    if not in_lanes:
        return own_runs
    return sorted((*own_runs, *in_lanes), key=lambda run: run.record.started_at if run.record is not None else "")


def lanes_of(state: StateDir, order_id: str) -> list[str]:
    """Return the lanes of a work order's pipeline on this host, in which the work order may have run."""
    places = [at for at, sign in enumerate(order_id) if sign == "-" and at > 0]
    roles = ("planner", *(f"executor-{number}" for number in range(1, 17)))
    names = (f"{order_id[:at]}-{role}" for at in places for role in roles)
    return [name for name in names if name != order_id and (state.runs / name).is_dir()]


def place_of(state: StateDir, order_id: str, *, now: bool = False) -> str:
    """Return the name of a work order's workspace on this host: the work order's id, or its last lane.

    With `now`, a lane counts only if no later work order has used the lane.
    """
    if (state.workspaces / order_id).exists():
        return order_id
    marks = []
    for lane in lanes_of(state, order_id):
        in_order = sorted((mark for _, mark in _marks(state, lane)), key=lambda mark: mark.serial)
        own = [mark for mark in (in_order[-1:] if now else in_order) if mark.key.workflow_id == order_id]
        marks += [(mark.started_at, lane) for mark in own[-1:]]
    return max(marks)[1] if marks else order_id


def owner_of(state: StateDir, place_id: str, moment: str, *, begins: bool = False) -> str:
    """Return the id of the work order that used a workspace at a moment, or the workspace's name if unknown.

    `moment` is ISO 8601 in UTC. With `begins`, return the first work order whose run began after the moment.
    """
    if pipeline_of(place_id) is None:
        return place_id
    marks = sorted((mark.started_at, mark.key.workflow_id) for _, mark in _marks(state, place_id))
    at = bisect_right([started_at for started_at, _ in marks], moment) - (0 if begins else 1)
    return marks[at][1] if 0 <= at < len(marks) else place_id


def _agent_run(run: Run) -> AgentRun:
    record, end = run.record, run.exit()
    return AgentRun(
        run=run.folder.name,
        step=record.step if record is not None else None,
        agent=record.agent if record is not None else None,
        session_id=record.session_id if record is not None else None,
        started_at=record.started_at if record is not None else None,
        ended_at=end.ended_at if end is not None else None,
        exit_code=end.exit_code if end is not None else None,
        cause=end.cause if end is not None else None,
        folder=str(run.folder),
        refused_hosts=tuple(scrub(name) for name in refused_hosts(run)[:MOST_REFUSED]),
    )


def _marks(state: StateDir, place_id: str) -> Iterator[tuple[Path, _Mark]]:
    try:
        folders = [path for path in (state.runs / place_id).iterdir() if path.name[:1].isdigit()]
    except (FileNotFoundError, NotADirectoryError):
        return
    for folder in folders:
        try:
            yield folder, _mark(folder)
        except (OSError, msgspec.MsgspecError):  # the run is about to begin, or a full disk cut its record
            continue


@lru_cache(maxsize=_REMEMBERED)
def _mark(folder: Path) -> _Mark:
    """Return the work order, number and start of a run from the run's record; cache the result."""
    return msgspec.json.decode((folder / "run.json").read_bytes(), type=_Mark)


def network_of(state: StateDir, order_id: str, *, offset: int = 0, limit: int | None = None) -> NetworkReply:
    """Return the network requests of a work order's set-up and runs; empty if this host has no such requests.

    Raises:
        InvalidInputError: The work order's id is invalid.
    """
    lines: list[tuple[Run | None, NetworkLine]] = [(None, line) for line in _setup_lines(state, order_id)]
    lines += [(run, line) for run in started_runs(state, order_id) for line in network_lines(run)]
    shown = lines[offset:] if limit is None else lines[offset : offset + limit]
    requests = tuple(_request(run, line) for run, line in shown)
    return NetworkReply(requests=requests, total=len(lines), is_cut=any(line.count > 1 for _, line in lines))


def refused_in_setup(state: StateDir, order_id: str) -> tuple[str, ...]:
    """Return the network addresses that the sandbox refused during a workspace's set-up, each once."""
    return tuple(scrub(name) for name in refused_in(_setup_lines(state, order_id))[:MOST_REFUSED])


def refused_to(in_setup: Iterable[str], runs: Iterable[AgentRun]) -> tuple[str, ...]:
    """Return the network addresses that the sandbox refused during set-up or to an agent, each once."""
    return tuple(dict.fromkeys((*in_setup, *(name for run in runs for name in run.refused_hosts))))


def _setup_lines(state: StateDir, order_id: str) -> Iterator[NetworkLine]:
    """Yield the network requests during set-up of a work order's workspace and of its pipeline's lanes."""
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
