"""Cache the log entries that were read, so that the next request reads only new ones."""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

from septet.state import StateDir

if TYPE_CHECKING:
    from clients.disk.agent_logs import AgentLogs  # what reads streams takes long to import
    from septet.contracts.views import LogEntry

_MOST_LOGS: Final = 8
_MOST_ENTRIES: Final = 20_000
"""Of a work order with more, nothing is kept: that is 40 MB at the most."""


@dataclass(frozen=True, slots=True)
class LogCache:
    """The logs of the work orders that were requested last."""

    _logs: "OrderedDict[str, AgentLogs]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def entries(self, state: StateDir, order_id: str) -> "tuple[AgentLogs, list[LogEntry]]":
        """Return a work order's logs, and all their entries so far.

        Raises:
            InvalidInputError: No work order can have that id.
        """
        from clients.disk.agent_logs import AgentLogs

        with self._lock:  # no other caller has what is taken out: a second caller reads for itself
            logs = self._logs.pop(order_id, None) or AgentLogs(state, order_id)
        entries = logs.entries()
        with self._lock:
            if len(entries) <= _MOST_ENTRIES:
                self._logs[order_id] = logs
            if len(self._logs) > _MOST_LOGS:
                self._logs.popitem(last=False)
        return logs, entries
