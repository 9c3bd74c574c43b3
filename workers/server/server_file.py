"""The file `server.json` in a state directory, with the address of the directory's server."""

import json
import os
import stat
from dataclasses import dataclass
from typing import Final

from septet.state import StateDir

_OTHERS_WRITE: Final = 0o022


@dataclass(frozen=True, slots=True)
class ServerFile:
    """The content of `server.json`: the server's addresses, and the processes that run it."""

    address: str
    ui: str
    pid: int
    start_time: float
    server_pid: int
    server_start_time: float
    api: str | None = None

    @property
    def is_held(self) -> bool:
        """Whether the process that started the server is alive."""
        return lives(self.pid, self.start_time)


def read_server_file(state: StateDir) -> ServerFile | None:
    """Return the content of `server.json`; `None` if the file is missing or unreadable.

    A file that another user owns or may write counts as missing, because it could name another server.
    """
    try:
        facts = state.server_file.lstat()
        if facts.st_uid != os.geteuid() or not stat.S_ISREG(facts.st_mode) or facts.st_mode & _OTHERS_WRITE:
            return None
        return ServerFile(**json.loads(state.server_file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def lives(pid: int, start_time: float) -> bool:
    """Return whether a process with this id lives and is the one that started at this time."""
    import psutil  # a process that only reads the file does not need it

    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - start_time) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
