"""The process that carries a turn out: one of its own, or one that serves many turns."""

import os
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from septet.agents.processes.order import Order, send_order
from septet.agents.runs.folders import Run, Runs
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.warm import (
    WarmProcess,
    WarmStart,
    connect_to_warm_process,
    end_warm,
    note_process,
    take_place,
)
from septet.errors import AgentCrashedError

REPLACED: Final = "replaced"
"""Why a process is ended that the next turn does not fit."""


@dataclass(frozen=True, slots=True)
class TurnProcess:
    """Where a turn is carried out: in a living process, in a new one that is kept, or in one of its own."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    living: WarmProcess | None = None
    """The living process."""
    start: WarmStart | None = None
    lock: int | None = None
    """That of the new process that is kept."""

    @classmethod
    def for_turn(cls, runs: Runs, order_id: str, start: WarmStart | None, session_id: str | None) -> Self:
        """Find the process for a turn; a warm one that it does not fit is ended. The caller has the writer's lock.

        Args:
            runs: The runs of this host.
            order_id: The workspace.
            start: How its process is started; `None` for one that is not kept.
            session_id: The session that the turn continues.

        Raises:
            AgentError: The process that is in the way does not end.
        """
        if start is None:
            end_warm(runs, order_id, REPLACED)
            return cls()
        living = WarmProcess.living(runs, order_id)
        if living is not None and living.fits(start, session_id):
            return cls(living.mark, living)
        return cls(start=start, lock=take_place(runs, order_id, REPLACED))

    @property
    def began_in(self) -> str | None:
        """The run that started the living process."""
        return Path(self.living.folder).name if self.living is not None else None

    def send_order(
        self, supervisors: Supervisors, run: Run, order: Order, locks: tuple[int, int]
    ) -> socket.socket:
        """Send the order to its supervisor and return the attempt's attachment.

        Only now is the living process used: it stands still until it has the order, however long a busy disk
        takes over the run's files.

        Args:
            supervisors: They start one where none waits.
            run: The turn's run.
            order: What to run.
            locks: Descriptors of the writer's lock and the run's.

        Raises:
            OSError: No supervisor could be started, or the disk is full.
            AgentCrashedError: There is no runner where there should be one, or the living process has ended.
        """
        connection = supervisors.connect() if self.living is None else _connect_to_warm(run.folder.parent)
        session_id = run.record.session_id if run.record is not None else None
        try:
            if self.start is None or self.lock is None:
                send_order(connection, order, locks)
            else:
                fingerprint = self.start.fingerprint(self.mark)
                note_process(self.lock, WarmProcess(self.mark, order.folder, session_id, fingerprint))
                send_order(connection, order, (*locks, self.lock))
        except OSError:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Let go of what a supervisor has now."""
        if self.lock is not None:
            os.close(self.lock)


def _connect_to_warm(folder: Path) -> socket.socket:
    """Return a connection to the warm process of a workspace, whose runs lie in a folder.

    Raises:
        AgentCrashedError: It has ended since it was found.
    """
    connected = connect_to_warm_process(folder)
    if connected is None:
        raise AgentCrashedError(
            f"The process that served {folder.name} has ended.", remedy="Septet tries again automatically."
        )
    return connected
