"""A worker's repeated reports: its host's limits, agents' costs, unreported turns, and its own health."""

import asyncio
import json
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import structlog
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from activities.host.host import Accounts, Host
from activities.turns.turn_costs import conclude_left_turn
from septet.agents.runs.records import RunKey
from septet.board import HostCapacity, board_id
from septet.budgets.account import SettleCall
from septet.budgets.turn_notes import HeldTurn
from septet.contracts.costs import MOST_NOTES, CostHistory, CostNote, CostNotes, costs_id
from septet.settings import Settings
from septet.system.durable import take_lock, write_atomically
from workers.beside import repeating
from workflows.board import Board

TELL_SECONDS: Final = 120.0
"""The seconds between a worker's reports to the board; a report means that the worker's host serves."""
_SILENT: Final = 3
"""The number of missed reports after which the board no longer counts a host."""


def serving_on_board(client: Client, settings: Settings, host_id: str) -> AbstractAsyncContextManager[None]:
    """Report to the board that this host serves, now and every few minutes while the block runs."""
    return repeating(partial(tell_board, client, settings, host_id), TELL_SECONDS, "board_not_told")


async def tell_board(client: Client, settings: Settings, host_id: str) -> None:
    """Report a host and its limits to the board; start a missing board.

    Raises:
        RPCError: The server refused.
    """
    await client.start_workflow(
        Board.run,
        id=board_id(settings.task_queue),
        task_queue=settings.task_queue,
        start_signal="serves",
        start_signal_args=[capacity_of(settings, host_id)],
        static_summary="Whose turn it is",
    )


def capacity_of(settings: Settings, host_id: str) -> HostCapacity:
    """Return a host's report to the board: its limits, and for how many seconds the report counts."""
    return HostCapacity(
        host=host_id,
        host_limit=0 if settings.drain else settings.host_limit,
        project_limit=settings.project_limit,
        seconds=_SILENT * TELL_SECONDS,
    )


_LOOK_SECONDS: Final = 2.0
"""The seconds between checks of the disk for costs to report."""
_GATHERED_SECONDS: Final = 300.0
"""The age in seconds at which the costs of an unfinished work order are reported, all together, because each
message costs money."""


def telling_costs(client: Client, host: Host) -> AbstractAsyncContextManager[None]:
    """Report the costs of this host's agents to the projects' cost histories while the block runs."""
    return repeating(CostTeller(client, host).look, _LOOK_SECONDS, "costs_not_told")


@dataclass(frozen=True, slots=True)
class CostTeller:
    """Reports the costs that one host has recorded; only one of the host's processes does so at a time."""

    client: Client
    host: Host
    gathered_seconds: float = _GATHERED_SECONDS

    async def look(self) -> int:
        """Report the recorded costs if they are due; return the number of reported notes on costs.

        Raises:
            RPCError: The server refused; the notes are reported at the next call.
        """
        lock = await asyncio.to_thread(self._lock_if_due)
        if lock is None:
            return 0
        try:
            notes = await asyncio.to_thread(self.host.cost_notes.take)
            by_project: dict[str, list[tuple[Path, CostNote]]] = defaultdict(list)
            for path, note in notes:
                by_project[note.project].append((path, note))
            for project, own in by_project.items():
                for first in range(0, len(own), MOST_NOTES):
                    page = own[first : first + MOST_NOTES]
                    await self._send(project, tuple(note for _, note in page))
                    await asyncio.to_thread(self._forget, [path for path, _ in page])
            return len(notes)
        finally:
            os.close(lock)

    def _lock_if_due(self) -> int | None:
        notes = self.host.cost_notes
        return take_lock(notes.lock) if notes.is_due(time.time() - self.gathered_seconds) else None

    async def _send(self, project: str, notes: tuple[CostNote, ...]) -> None:
        queue = self.host.settings.task_queue
        await self.client.start_workflow(
            "Costs",
            CostHistory(project=project),
            id=costs_id(queue, project),
            task_queue=queue,
            start_signal="note",
            start_signal_args=[CostNotes(notes=notes)],
            static_summary=f"What work orders of {project} have cost"[:200],
        )

    def _forget(self, paths: list[Path]) -> None:
        for path in paths:
            self.host.cost_notes.forget(path)


LOOK_SECONDS: Final = 60.0
_LEFT_SECONDS: Final = 300.0
"""The seconds after an agent's end in which the attempt may still report the turn itself."""

_log = structlog.get_logger()


def telling_left_turns(host: Host) -> AbstractAsyncContextManager[None]:
    """While the block runs, report to the budget accounts the turns that no attempt has reported."""
    if host.accounts is None:
        return nullcontext()
    return repeating(LeftTurns(host, host.accounts).look, LOOK_SECONDS, "budgets_not_told")


@dataclass(frozen=True, slots=True)
class LeftTurns:
    """Reports a turn's use to its budgets if its agent is dead and its attempt did not report the turn in time."""

    host: Host
    accounts: Accounts
    left_seconds: float = _LEFT_SECONDS
    _seen: dict[tuple[str, str], float] = field(default_factory=dict)
    """For each workspace and turn, when it was first found without an agent, in monotonic seconds."""

    async def look(self) -> int:
        """Report the turns that waited long enough for an attempt's report, and return their number.

        Raises:
            SeptetError: An account was not reached; the remaining turns are reported at the next call.
        """
        count, now = 0, time.monotonic()
        for place_id, turn in await asyncio.to_thread(self._find):
            since = self._seen.setdefault((place_id, turn.key), now)
            if turn.is_over or now - since >= self.left_seconds:
                count += await self._tell(place_id, turn)
                del self._seen[place_id, turn.key]
        return count

    def _find(self) -> list[tuple[str, HeldTurn]]:
        notes, runs = self.host.held_turns, self.host.runs
        turns = [(place, turn) for place in notes.places() if not runs.is_held(place) for turn in notes.of(place)]
        for key in [*self._seen]:
            if key not in {(place, turn.key) for place, turn in turns}:
                del self._seen[key]
        return turns

    async def _tell(self, place_id: str, turn: HeldTurn) -> bool:
        """Report a turn's use to its accounts, under the writer's lock; if the lock is held, only return false."""
        lock = await asyncio.to_thread(self.host.runs.lock_writer, place_id)
        if lock is None:
            return False
        try:
            key = RunKey(turn.workflow_id, turn.run_id, turn.activity_id)
            use = await asyncio.to_thread(conclude_left_turn, self.host, place_id, key)
            for scope in turn.scopes:
                await self.accounts.settle(scope, SettleCall(key=turn.key, used=use))
            await asyncio.to_thread(self.host.held_turns.forget, place_id, turn.key)
        finally:
            os.close(lock)
        _log.info("budget_told_late", place=place_id, usd=use.usd, tokens=use.tokens)
        return True


HEALTH_SECONDS: Final = 5.0
"""The seconds between writes of the health file; if several are missed, `docker/health.py` counts the worker as
cut off from the server."""


@asynccontextmanager
async def reporting_health(client: Client, host: Host) -> AsyncIterator[None]:
    """Keep the health file current while the block runs, then delete it; this costs no Action.

    This first deletes a file that a killed worker may have left.
    """
    host.state.health_file.unlink(missing_ok=True)
    async with (
        repeating(partial(_report, client, host), HEALTH_SECONDS, "health_not_known"),
        repeating(partial(_give_sign, host), HEALTH_SECONDS, "no_sign_of_life_given"),
    ):
        yield
    host.state.health_file.unlink(missing_ok=True)


async def _give_sign(host: Host) -> None:
    """Update the health file's time, because the process is alive even if the server does not answer."""
    with suppress(FileNotFoundError):  # the server has not seen this worker yet
        await asyncio.to_thread(os.utime, host.state.health_file)


async def _report(client: Client, host: Host) -> None:
    """Write the time of this worker's last poll, as the server lists it, to the health file."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=host.settings.task_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    answer = await client.workflow_service.describe_task_queue(request)
    polls = [each.last_access_time.ToDatetime(UTC) for each in answer.pollers if each.identity == client.identity]
    if polls:
        content = {
            "polled_at": max(polls).isoformat(),
            "looked_at": datetime.now(UTC).isoformat(),
            "task_queue": host.settings.task_queue,
        }
        await asyncio.to_thread(write_atomically, host.state.health_file, json.dumps(content).encode())
