"""Report the costs of agents to the history of their project: soon after a work order is completed."""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio.client import Client

from activities.host.host import Host
from septet.contracts.costs import MOST_NOTES, CostHistory, CostNote, CostNotes, costs_id
from septet.system.locks import take_lock
from workers.beside import beside, repeat

_LOOK_SECONDS: Final = 2.0
"""The seconds between checks of the disk: the delay of the report of a completed work order."""
_GATHERED_SECONDS: Final = 300.0
"""The age in seconds at which a turn of an unfinished work order is reported, together with all others: each
message is an Action."""


@asynccontextmanager
async def telling_costs(client: Client, host: Host) -> AsyncIterator[None]:
    """Report the costs of this host's agents to their histories while the block runs."""
    teller = CostTeller(client, host)
    async with beside(repeat(teller.look, lambda: _LOOK_SECONDS, "costs_not_told")):
        yield


@dataclass(frozen=True, slots=True)
class CostTeller:
    """Reports the costs that one host has noted; one process of its workers at a time."""

    client: Client
    host: Host
    gathered_seconds: float = _GATHERED_SECONDS

    async def look(self) -> int:
        """Report the notes that are due, and return their number.

        Raises:
            RPCError: The server refused; the notes are reported at the next call.
        """
        lock = await asyncio.to_thread(self._lock_if_due)
        if lock is None:
            return 0
        try:
            return await self._tell(await asyncio.to_thread(self.host.cost_notes.take))
        finally:
            os.close(lock)

    def _lock_if_due(self) -> int | None:
        notes = self.host.cost_notes
        return take_lock(notes.lock) if notes.is_due(time.time() - self.gathered_seconds) else None

    async def _tell(self, notes: list[tuple[Path, CostNote]]) -> int:
        by_project: dict[str, list[tuple[Path, CostNote]]] = defaultdict(list)
        for path, note in notes:
            by_project[note.project].append((path, note))
        for project, own in by_project.items():
            for first in range(0, len(own), MOST_NOTES):
                page = own[first : first + MOST_NOTES]
                await self._send(project, tuple(note for _, note in page))
                await asyncio.to_thread(self._forget, [path for path, _ in page])
        return len(notes)

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
