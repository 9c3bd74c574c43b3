"""Cache log entries that were read, so that the next request reads only new entries from the disk."""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from clients.disk.agent_logs import AgentLogs  # the import takes long
    from septet.contracts.host_files import LogEntry

_MOST_LOGS: Final = 8
_MOST_ENTRIES: Final = 20_000
"""The most entries of a log that the cache keeps; these take at most 40 MB."""


@dataclass(frozen=True, slots=True)
class LogCache:
    """A cache of the agents' logs of the work orders that were requested last."""

    _logs: "OrderedDict[str, AgentLogs]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def entries(self, unread: "AgentLogs") -> "tuple[AgentLogs, list[LogEntry]]":
        """Return the cached reader of a work order's logs (or else `unread`), and all log entries so far.

        Raises:
            InvalidInputError: The work order's id is invalid.
        """
        order_id = unread.order_id
        with self._lock:  # a second caller at the same time reads for itself
            logs = self._logs.pop(order_id, unread)
        entries = logs.entries()
        with self._lock:
            if len(entries) <= _MOST_ENTRIES:
                self._logs[order_id] = logs
            if len(self._logs) > _MOST_LOGS:
                self._logs.popitem(last=False)
        return logs, entries
