"""What `server.json` in a state directory says of its server: read by all that look for one."""

import json
import os
import stat
from dataclasses import dataclass
from typing import Final

from septet.state import StateDir

_OTHERS_WRITE: Final = 0o022


@dataclass(frozen=True, slots=True)
class ServerFile:
    """What `server.json` says: where the server of a state directory is, and which process holds it."""

    address: str
    ui: str
    pid: int
    start_time: float
    server_pid: int
    server_start_time: float
    api: str | None = None

    @property
    def is_held(self) -> bool:
        """Whether the process that started it lives."""
        return lives(self.pid, self.start_time)


def read_server_file(state: StateDir) -> ServerFile | None:
    """Return what the state directory's `server.json` says, or `None` where there is none that can be read.

    A file of another user, or one that others may write, could lead clients to another server: it counts as none.
    """
    try:
        facts = state.server_file.lstat()
        if facts.st_uid != os.geteuid() or not stat.S_ISREG(facts.st_mode) or facts.st_mode & _OTHERS_WRITE:
            return None
        return ServerFile(**json.loads(state.server_file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def lives(pid: int, start_time: float) -> bool:
    """Return whether this very process lives: a pid counts only with its start time."""
    import psutil  # who only reads the file does not pay for it

    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - start_time) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
