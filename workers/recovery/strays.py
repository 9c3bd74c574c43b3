"""End stray agents: agents of closed or paused work orders, and agents that no worker followed."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog
from temporalio.client import Client

from activities.host.cancellation import CLOSED, is_closed, is_paused
from activities.host.host import Host
from activities.turns.turn_costs import is_unread, note_unread_turns
from septet.agents.outcomes.endings import PAUSED, RESTARTED
from septet.agents.runs.folders import Run, Runs
from septet.agents.sandbox.connections import end_agent
from septet.agents.turns.end_of_turn import end_all, finalize_runs, sweep_order
from septet.agents.turns.warm import end_warm, is_warm, warm_orders
from septet.errors import SeptetError
from septet.janitor.terms import pipeline_of
from septet.system.durable import close_after
from septet.system.threads import LOOKS, shielded_thread
from workers.beside import beside, repeat, try_look

LOOK_SECONDS: Final = 30.0
_LEAVING_SECONDS: Final = 2.0
"""How many seconds an ended agent's supervisor may take to release the writer's lock."""
_WHY: Final = "closed"
_NOT_LOOKED_AFTER: Final = "strays_not_looked_after"

_log = structlog.get_logger()

_SETTLED_NS: Final = 1_000_000_000
"""The nanoseconds after a folder's change in which a further change may not alter the folder's time."""


@dataclass(slots=True)
class BusyOrders:
    """Finds the work orders on one host whose writer's lock is held, by an agent, an attempt or a warm process.

    A folder whose locks were free is skipped until the folder's time changes, as it does when a lock is taken.
    """

    runs: Runs
    _quiet: dict[str, int] = field(default_factory=dict)
    """For each work order with free locks, when its folder last changed, in nanoseconds."""

    def find(self) -> list[str]:
        """Return the work orders with a held lock."""
        busy: list[str] = []
        quiet: dict[str, int] = {}
        settled = time.time_ns() - _SETTLED_NS
        with os.scandir(self.runs.root) as entries:
            for order in (each for each in entries if each.is_dir()):
                with suppress(FileNotFoundError):  # the janitor has just removed it
                    changed = order.stat().st_mtime_ns
                    is_quiet = self._quiet.get(order.name) == changed
                    if not is_quiet and (self.runs.is_held(order.name) or is_warm(self.runs, order.name)):
                        busy.append(order.name)
                    elif changed < settled:
                        quiet[order.name] = changed
        self._quiet = quiet
        return sorted(busy)


@asynccontextmanager
async def looking_after_strays(client: Client, host: Host) -> AsyncIterator[None]:
    """End stray agents now, and every half minute while the block runs."""

    async def look() -> None:
        keep = partial(shielded_thread, host.threads.disk, keep_what_was_left_alone, host)
        await try_look(keep, _NOT_LOOKED_AFTER)
        orders = BusyOrders(host.runs)
        await repeat(partial(end_strays, client, host, orders), lambda: LOOK_SECONDS, _NOT_LOOKED_AFTER)

    async with beside(look()):
        yield


async def end_strays(client: Client, host: Host, orders: BusyOrders) -> list[str]:
    """End the agents of closed or paused work, save their work, and return the names of their runs.

    This checks the workflow run that started an agent, so a reset counts as the end of the work. Agents of work
    orders that the server does not know may belong to another server, and run until their orphan limit. Paused
    work keeps its session and its worktree.
    """
    ended, runs = [], host.runs
    busy = await asyncio.to_thread(orders.find)
    for place_id in busy:
        if runs.is_held(place_id) or not is_warm(runs, place_id):
            continue
        if await is_closed(client, pipeline_of(place_id) or place_id, when_unknown=False):
            _log.warning("stray_ended", run=place_id, why=CLOSED)
            await _end_warm(runs, place_id, _WHY)
    for run in await asyncio.to_thread(_living, runs, busy):
        if run.record is None:
            continue
        key = run.record.key
        if not await is_closed(client, key.workflow_id, run_id=key.run_id, when_unknown=False):
            if await is_paused(client, key) and await _end_agent(run, PAUSED):
                ended.append(run.name)
            continue
        if await _end_agent(run, _WHY):
            await shielded_thread(
                host.threads.disk, _keep_unless_busy, host, run, "The work order was closed or reset from outside."
            )
            ended.append(run.name)
    return ended


async def _end_agent(run: Run, why: str) -> bool:
    """End one agent, unless a later agent has replaced it; return whether the agent has ended."""
    try:
        await end_agent(run, why)
    except SeptetError as error:
        _log.warning("stray_not_ended", run=run.name, error=error.message)
        return False
    _log.warning("stray_ended", run=run.name, why=why)
    return True


async def end_living(host: Host, why: str) -> list[str]:
    """End all agents and warm processes of this host, save their work, and return the names of their runs.

    The host's next worker resumes the sessions, and no step loses a try. This uses no thread pool of the worker,
    because the worker may have closed its pools.
    """
    runs = host.runs
    living = await asyncio.to_thread(_living, runs, runs.orders())
    ended = [run.name for run in living if await _end_all(host, run, RESTARTED, why)]
    for order_id in await asyncio.to_thread(warm_orders, runs):
        await _end_warm(runs, order_id, RESTARTED)
    return ended


async def _end_warm(runs: Runs, place_id: str, why: str) -> None:
    try:
        await asyncio.to_thread(end_warm, runs, place_id, why)
    except SeptetError as error:
        _log.warning("warm_process_not_ended", place=place_id, error=error.message)


async def _end_all(host: Host, run: Run, why: str, reason: str) -> bool:
    """End all agent processes of a run's work order, and save the work; return whether they ended."""
    try:
        await end_all(host.runs, run.folder.parent.name, why)
    except SeptetError as error:
        _log.warning("stray_not_ended", run=run.name, error=error.message)
        return False
    await shielded_thread(LOOKS, _keep, host, run, reason)
    return True


def keep_what_was_left_alone(host: Host) -> None:
    """Clean up after killed supervisors, and save the work of agents that ended without a worker.

    This also records the agents' costs, if no attempt has reported these costs.
    """
    runs = host.runs
    for order_id in runs.orders():
        order_runs = runs.of(order_id)
        last = next(reversed(order_runs), None)
        if last is None:
            continue
        end = last.exit()
        if end is None:
            try:
                sweep_order(runs, order_id)
            except SeptetError as error:
                _log.warning("stray_not_swept", place=order_id, error=error.message)
        elif end.cause == "orphan_limit":
            _keep_unless_busy(host, last, "no worker had followed the agent for too long, and it was ended")
        if any(is_unread(run) for run in order_runs):
            _note_costs_unless_busy(host, order_id)


def _living(runs: Runs, orders: Sequence[str]) -> list[Run]:
    held = (order_id for order_id in orders if runs.is_held(order_id))
    return [run for order_id in held if (run := runs.living(order_id)) is not None]


def _keep_unless_busy(host: Host, run: Run, why: str) -> None:
    """Complete a run's record and save its work; leave both to an agent or attempt that holds the lock."""
    runs, place_id, bound = host.runs, run.folder.parent.name, time.monotonic() + _LEAVING_SECONDS
    while (lock := runs.lock_writer(place_id)) is None:
        if time.monotonic() > bound:
            return
        time.sleep(0.02)
    with close_after(lock):
        finalize_runs(runs, place_id)
        _note_costs(host, place_id)
        _keep(host, run, why)


def _note_costs_unless_busy(host: Host, place_id: str) -> None:
    """Record unreported costs of turns, unless an agent or attempt holds the lock and will do so."""
    lock = host.runs.lock_writer(place_id)
    if lock is not None:
        with close_after(lock):
            _note_costs(host, place_id)


def _note_costs(host: Host, place_id: str) -> None:
    try:
        note_unread_turns(host, place_id)
    except (SeptetError, OSError) as error:
        _log.warning("stray_not_counted", place=place_id, error=str(error))


def _keep(host: Host, run: Run, why: str) -> None:
    try:
        host.snapshots.rescue_once(host.place(run.folder.parent.name), why, run.record.step if run.record else "")
    except (SeptetError, OSError) as error:
        _log.warning("stray_not_kept", run=run.name, error=str(error))
