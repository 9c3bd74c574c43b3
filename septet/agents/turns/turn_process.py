"""The process that carries a turn out: one of its own, or one that serves many turns."""

import os
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from septet.agents.runs.folders import Runs
from septet.agents.supervisor.order import Order
from septet.agents.turns.supervisors import SupervisorConnection, Supervisors
from septet.agents.turns.warm import (
    WarmProcess,
    WarmStart,
    connect_to_warm_process,
    end_warm,
    note_process,
    take_place,
)

REPLACED: Final = "replaced"
"""Why a process is ended that the next turn does not fit."""


@dataclass(frozen=True, slots=True)
class TurnProcess:
    """Where a turn is carried out: in a living process, in a new one that is kept, or in one of its own."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    connection: SupervisorConnection | None = None
    """To the living process."""
    began_in: str | None = None
    """The run that started that one."""
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
            session_id: The session that the turn goes on with.

        Raises:
            AgentError: The process that is in the way does not end.
        """
        if start is None:
            end_warm(runs, order_id, REPLACED)
            return cls()
        living = WarmProcess.living(runs, order_id)
        if living is not None and living.fits(start, session_id):
            connected = connect_to_warm_process(runs, order_id)
            if connected is not None:
                connection = SupervisorConnection(connected, living.order_version)
                return cls(living.mark, connection, Path(living.folder).name)
        return cls(start=start, lock=take_place(runs, order_id, REPLACED))

    def send_order(
        self, supervisors: Supervisors, order: Order, locks: tuple[int, int], session_id: str | None
    ) -> socket.socket:
        """Send the order to its supervisor and return the attempt's attachment.

        Args:
            supervisors: They start one where none waits.
            order: What to run.
            locks: Descriptors of the writer's lock and the run's.
            session_id: The session of the turn, where it is known.

        Raises:
            OSError: No supervisor could be started, or the disk is full.
            AgentCrashedError: There is no runner where there should be one.
        """
        connection = self.connection or supervisors.connect()
        try:
            if self.start is None or self.lock is None:
                connection.send(order, locks)
            else:
                fingerprint, version = self.start.fingerprint(self.mark), connection.order_version
                note_process(self.lock, WarmProcess(self.mark, order.folder, session_id, fingerprint, version))
                connection.send(order, (*locks, self.lock))
        except OSError:
            connection.close()
            raise
        return connection.socket

    def close(self, *, was_sent: bool) -> None:
        """Let go of what a supervisor has now; `was_sent` says whether the order was."""
        if self.lock is not None:
            os.close(self.lock)
        if self.connection is not None and not was_sent:
            self.connection.close()
