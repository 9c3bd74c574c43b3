"""Which process listens on a port of this machine, and whose server it is."""

import contextlib
from pathlib import Path

import psutil

from septet.state import StateDir


def state_dir_of(address: str) -> Path | None:
    """Return the state directory whose embedded server listens at an address, where it is seen on this machine."""
    with contextlib.suppress(psutil.Error, ValueError):
        listener = _listener(int(address.rpartition(":")[2]))
        argv = listener.cmdline() if listener is not None else []
        database = Path(argv[argv.index("--db-filename") + 1])
        return database.parent if database == StateDir(database.parent).database else None
    return None


def port_holder(port: int) -> str:
    """Return which process listens on a port of this machine; empty where none is seen."""
    with contextlib.suppress(psutil.Error):
        if (listener := _listener(port)) is not None:
            return f"{listener.name()} (process {listener.pid})"
    return ""


def _listener(port: int) -> psutil.Process | None:
    """Return the process that listens on a port of this machine, where this user may see it."""
    with contextlib.suppress(psutil.Error, OSError):
        for each in psutil.net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr[1:2] == (port,) and each.pid is not None:
                return psutil.Process(each.pid)
    return None
