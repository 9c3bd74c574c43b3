"""Start, replace and end the proxy process of a supervisor's guest.

The supervisor keeps the sockets that listen in the guest's network. If a proxy is killed, the supervisor starts
another proxy with these sockets, and the guest loses only its open connections.
"""

import errno
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress

from septet.agents.processes.own_user import FIRST_USER
from septet.agents.processes.process_tree import close_others, die_with_parent
from septet.agents.proxy.guest_sockets import send_sockets
from septet.agents.proxy.network_log import NetworkLog, open_log
from septet.agents.proxy.network_rules import Network
from septet.agents.proxy.proxy import Proxy

READY = b"ready"
MOST_PROXIES = 100
"""The number of proxies that one guest may have: a cause that has killed so many proxies is permanent."""
ENDED_BEFORE = "it ended before"
"""The reason if the guest ended by itself before the proxy listened; the guest's output shows the cause."""


class WayOut:
    """The proxy of one guest; the guest starts only when the proxy listens."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        """Read the rules of the network; make pipes for bubblewrap's report and for the start of the guest."""
        self.network = Network(fields)
        self.pid = 0
        self.started_count = 0
        self.listeners: list[int] = []
        """The descriptors of the sockets that listen in the guest's network; empty before the network exists."""
        self.info, self.told = os.pipe()
        self.held, self.release = os.pipe()
        self.pipes = [self.info, self.told, self.held, self.release]
        """The pipes that the supervisor needs until the guest has started."""
        for descriptor in (self.told, self.held):
            os.set_inheritable(descriptor, True)
        self.control, self.control_of_proxy = socket.socketpair()

    @property
    def options(self) -> tuple[str, ...]:
        """Bubblewrap's options: where to write its report, and what to wait for before the guest's start."""
        return ("--info-fd", str(self.told), "--block-fd", str(self.held))

    def start(self) -> None:
        """Fork the proxy; the guest waits until the first proxy listens in the guest's network."""
        log, supervisor = open_log(), os.getpid()
        try:
            self.pid = os.fork()
            if self.pid == 0:
                become_proxy(self, log, supervisor)
        finally:
            os.close(log)
        self.started_count += 1
        self.control_of_proxy.close()

    def replace(self) -> bool:
        """Fork a new proxy after the old proxy was killed; return whether the fork succeeded."""
        self.pid = 0
        self.control.close()
        if not self.listeners or self.started_count >= MOST_PROXIES:
            return False
        try:
            self.control, self.control_of_proxy = socket.socketpair()
            self.start()
        except OSError:
            return False
        return True

    def await_listening(self) -> str:
        """Wait until the proxy listens; return an empty text, or the reason of a failure."""
        self.close_pipes()
        self.control.settimeout(20.0)
        try:
            told, self.listeners, _, _ = socket.recv_fds(self.control, 600, len(self.network.places))
        except OSError as error:
            told = f"{errno.errorcode.get(error.errno or 0, '')}: it does not listen".encode()
        self.control.settimeout(None)
        for descriptor in self.listeners:
            os.set_inheritable(descriptor, False)
        if told == READY:
            return ""
        return told.decode("utf-8", "replace") or "its proxy ended"

    def close_pipes(self) -> None:
        """Close the pipes that only the start needs."""
        for descriptor in self.pipes:
            os.close(descriptor)
        self.pipes = []

    def send_log(self, descriptor: int) -> None:
        """Send the next turn's log, `descriptor`, to the proxy, and close it here; ignore an ended proxy."""
        tell(self.control, b"+", [descriptor])
        os.close(descriptor)

    def end(self) -> None:
        """Make the proxy write the rest of its log and end."""
        self.close_pipes()
        with suppress(OSError):  # a proxy that has ended is reaped by the supervisor
            self.control.shutdown(socket.SHUT_WR)
        for descriptor in self.listeners:
            os.close(descriptor)
        self.listeners = []

    def await_log(self) -> None:
        """Wait until the proxy has written its log, for half a second at most."""
        with suppress(OSError):  # the socket is closed if no further proxy could be started
            self.control.settimeout(0.5)
            self.control.recv(1)


def become_proxy(way_out: WayOut, log: int, supervisor: int) -> None:
    """Turn this new fork into the proxy; never return."""
    code = 1
    control = way_out.control_of_proxy
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        die_with_parent()
        os.close(0)
        os.open(os.devnull, os.O_RDWR)
        os.dup2(0, 1)
        os.dup2(0, 2)
        pipes = (way_out.info, way_out.release) if way_out.pipes else ()
        close_others((*pipes, *way_out.listeners, control.fileno(), log))
        if os.getppid() == supervisor:
            serve(way_out, NetworkLog(log), control)
        code = 0
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "")
        tell(control, f"{name}: the network of the sandbox cannot be entered: {error.strerror or error}".encode())
    finally:
        control.close()
        os._exit(code)


def serve(way_out: WayOut, log: NetworkLog, control: socket.socket) -> None:
    """Make the sockets in the guest's network, let the guest start, and serve the guest's connections."""
    listeners = way_out.listeners
    if way_out.pipes:
        listeners = receive_listeners(way_out)
        while os.read(way_out.info, 4096):  # bubblewrap writes more, and would end without a reader
            continue
        tell(control, READY if listeners else ENDED_BEFORE.encode(), listeners)
        os.close(way_out.info)
        os.close(way_out.release)  # the guest continues
    way_out.network.prepare_tls()
    give_up_root()
    if listeners:
        sockets = [socket.socket(fileno=each) for each in listeners]
        Proxy(way_out.network, log).serve(sockets, control)


def receive_listeners(way_out: WayOut) -> list[int]:
    """Return descriptors of sockets that listen in the guest's network; empty if the guest has ended."""
    ours, theirs = socket.socketpair()
    places = way_out.network.places
    helper = os.fork()
    if helper == 0:
        code = errno.EIO
        try:
            close_others((way_out.info, theirs.fileno()))
            send_sockets(theirs, way_out.info, places)
            code = 0
        except OSError as error:
            code = error.errno or code
        finally:
            os._exit(code)
    theirs.close()
    _, descriptors, _, _ = socket.recv_fds(ours, 1, len(places))
    ours.close()
    code = os.waitstatus_to_exitcode(os.waitpid(helper, 0)[1])
    if code != 0:
        raise OSError(abs(code), os.strerror(code) if code > 0 else "what entered it was killed")
    return list(descriptors)


def give_up_root() -> None:
    """Change this process from root to an unprivileged user; do nothing if the kernel refuses."""
    if os.geteuid() != 0:
        return
    user = FIRST_USER + os.getpid()
    try:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError:
        return
    die_with_parent()  # the kernel forgets it when the user changes


def tell(control: socket.socket, words: bytes, descriptors: list[int] | None = None) -> None:
    """Send words and descriptors over a socket; ignore an ended receiver."""
    with suppress(OSError):
        socket.send_fds(control, [words], descriptors or [])
