"""The ports of the embedded server, and who listens on a port of this machine."""

import contextlib
import secrets
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Self

import psutil

from septet.errors import UsageError
from septet.state import StateDir


@dataclass(frozen=True, slots=True)
class Ports:
    """The loopback ports of the embedded server."""

    server: int = 7233
    ui: int = 8233
    """The port of the web UI for browsers; the server's own port for the UI is another, secret one."""
    api: int | None = None
    """The port of the HTTP API; `None` for no HTTP API."""
    metrics: int | None = None
    """The port of the server's metrics; `None` for no metrics."""


@dataclass(frozen=True, slots=True)
class UiAddress:
    """The secret address of the server's own web UI, which checks no user, and the address of its relay."""

    host: str
    port: int
    relay: str
    """The address of the relay for browsers."""
    codec: str = ""
    """The address of the server that opens sealed payloads for the UI; if empty, payloads stay sealed."""

    @classmethod
    def free(cls, relay: str, codec: str = "") -> Self:
        """Return a free loopback address that web pages cannot guess; on Linux, from all of 127.0.0.0/8."""
        if sys.platform != "linux":
            return cls("127.0.0.1", free_port(), relay, codec)
        host = str(IPv4Address("127.0.0.0") + 256 + secrets.randbelow(2**24 - 512))
        with socket.socket() as probe:
            probe.bind((host, 0))
            return cls(host, probe.getsockname()[1], relay, codec)


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Return whether a loopback port is free now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


def refuse_taken_ports(ports: Ports) -> None:
    """Raise if a port is not free.

    Raises:
        UsageError: A port is taken or given twice; the remedy names the option.
    """
    options = {"--port": ports.server, "--ui-port": ports.ui}
    if ports.api is not None:
        options["--api-port"] = ports.api
    before: list[int] = []
    for option, port in options.items():
        if port in before:
            raise UsageError(f"Port {port} is given twice.", remedy=f"Name another one with {option}.")
        if not is_free(port):
            by = f" by {holder}" if (holder := port_holder(port)) else ""
            raise UsageError(f"Port {port} of 127.0.0.1 is taken{by}.", remedy=_other_ports(options))
        before.append(port)


def _other_ports(options: Mapping[str, int]) -> str:
    chosen: list[int] = []
    for port in options.values():
        near = (each for each in range(port, min(port + 200, 65_536)) if each not in chosen and is_free(each))
        chosen.append(next(near, 0) or free_port())
    words = " ".join(f"{option} {port}" for option, port in zip(options, chosen, strict=True))
    return f"Use others: add {words} to the command."


def state_dir_of(address: str) -> Path | None:
    """Return the state directory of the embedded server at an address; `None` if no such server is visible."""
    with contextlib.suppress(psutil.Error, ValueError):
        listener = _listener(int(address.rpartition(":")[2]))
        argv = listener.cmdline() if listener is not None else []
        database = Path(argv[argv.index("--db-filename") + 1])
        return database.parent if database == StateDir(database.parent).database else None
    return None


def port_holder(port: int) -> str:
    """Return the name of the process that listens on a local port; empty if no process is visible."""
    with contextlib.suppress(psutil.Error):
        if (listener := _listener(port)) is not None:
            return f"{listener.name()} (process {listener.pid})"
    return ""


def _listener(port: int) -> psutil.Process | None:
    with contextlib.suppress(psutil.Error, OSError):
        for each in psutil.net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr[1:2] == (port,) and each.pid is not None:
                return psutil.Process(each.pid)
    return None
