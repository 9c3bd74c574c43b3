"""The fork server and the runner: two small programs that fork supervisors.

A worker's fork server has a socket as stdin. The worker sends further sockets over this socket, and each further
socket gets a supervisor. The fork server ends when its worker dies.

A runner serves workers that come and go, such as containers. It has a listening socket as stdin, and the number of
its lock's descriptor as argument. Each connection gets a supervisor, which dies with the runner. If a
supervisor is killed, the runner kills the processes that it left. `start.py` runs both programs.
"""

import gc
import os
import select
import signal
import socket
import time
from contextlib import suppress

from septet.agents.processes.order import WARM, receive_order
from septet.agents.processes.own_user import prepare_user
from septet.agents.processes.process_tree import children, die_with_parent, kill_below, lead_orphans
from septet.agents.supervisor.agent_process import NEVER
from septet.agents.supervisor.agent_run import Supervisor
from septet.agents.supervisor.recorder import is_recorder
from septet.agents.supervisor.warm_process import WarmSupervisor

TICK_SECONDS = 0.5
SWEEP_SECONDS = 2.0
"""The longest time to kill what a supervisor left; a process that lives longer hangs in the kernel."""
RECORD_SECONDS = 1.0
"""The longest wait for a recorder to write an agent's output."""
STOP_SECONDS = 8.0
"""The longest wait for supervisors to end; an agent has two seconds of grace."""


class Runner:
    """Forks a supervisor for each connection of a worker."""

    def __init__(self, listener: socket.socket, lock: int) -> None:
        """Take the listening socket, and the descriptor of the lock that shows that the runner lives."""
        self.listener = listener
        self.lock = lock
        self.supervisors: set[int] = set()
        self.wakeup, self.wakeup_writer = os.pipe()
        self.stop_at = NEVER

    def serve(self) -> socket.socket | None:
        """Fork supervisors until SIGTERM or Ctrl-C, and then wait for the supervisors' ends.

        In a supervisor, this returns the supervisor's socket; in the runner, it returns `None`.
        """
        lead_orphans()
        self.listener.setblocking(False)
        os.set_blocking(self.wakeup_writer, False)
        signal.set_wakeup_fd(self.wakeup_writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT))
        poller = select.poll()
        for descriptor in (self.listener.fileno(), self.wakeup):
            poller.register(descriptor, select.POLLIN)
        while self.stop_at == NEVER or (self.supervisors and time.monotonic() < self.stop_at):
            for descriptor, _ in poller.poll(None if self.stop_at == NEVER else TICK_SECONDS * 1000):
                if descriptor == self.listener.fileno():
                    client = self.fork_supervisor()
                    if client is not None:
                        return client
                elif {signal.SIGTERM, signal.SIGINT}.intersection(os.read(self.wakeup, 4096)):
                    self.stop()
                    poller.unregister(self.listener.fileno())
            self.settle()
        return None

    def fork_supervisor(self) -> socket.socket | None:
        """Fork a supervisor for a new connection; in the supervisor, return the socket, in the runner `None`."""
        try:
            client, _ = self.listener.accept()
        except OSError:
            return None
        self.settle()
        runner = os.getpid()
        supervisor = fork_or_refuse()
        if supervisor == 0:
            return self.become_supervisor(client, runner)
        if supervisor > 0:
            self.supervisors.add(supervisor)
        client.close()
        return None

    def become_supervisor(self, client: socket.socket, runner: int) -> socket.socket:
        """Turn this new fork into a supervisor that dies with the runner; return the supervisor's socket."""
        die_with_parent()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.setsid()
        for own in (self.wakeup, self.wakeup_writer, self.lock):
            os.close(own)
        self.listener.close()
        moved = move_to_stdin(client)
        if os.getppid() != runner:
            os._exit(1)
        return moved

    def settle(self) -> None:
        """Reap ended supervisors, and kill the processes that these supervisors left."""
        began_at = time.monotonic()
        while self.reap() and (seconds := time.monotonic() - began_at) < SWEEP_SECONDS:
            for stray in children(os.getpid()):
                if stray not in self.supervisors and not (seconds < RECORD_SECONDS and is_recorder(stray)):
                    kill_below(stray, itself=True)
            time.sleep(0.001)

    def reap(self) -> bool:
        """Reap all ended children; return whether children other than supervisors live."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return not self.supervisors.issuperset(children(os.getpid()))
            self.supervisors.discard(pid)

    def stop(self) -> None:
        """Request the end of all supervisors."""
        self.stop_at = time.monotonic() + STOP_SECONDS
        for supervisor in self.supervisors:
            with suppress(OSError):
                os.kill(supervisor, signal.SIGTERM)


def fork_or_refuse() -> int:
    """Return the result of `fork`, or -1 if the machine refuses."""
    try:
        return os.fork()
    except OSError:
        return -1


def move_to_stdin(client: socket.socket) -> socket.socket:
    """Move a socket to descriptor 0 and return the socket; an agent's files then get numbers above 2."""
    os.dup2(client.fileno(), 0, inheritable=False)
    client.close()
    return socket.socket(fileno=0)


def fork_supervisors(worker: socket.socket) -> socket.socket | None:
    """Fork supervisors until the worker ends; in a supervisor, return the socket, in the fork server `None`."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps supervisors
    while True:
        request, sockets, _, _ = socket.recv_fds(worker, 1, 1)
        if not request or not sockets:
            return None
        if fork_or_refuse() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            worker.close()
            return move_to_stdin(socket.socket(fileno=sockets[0]))
        os.close(sockets[0])


def main(lock: str = "") -> None:
    """Fork supervisors, as a runner if `lock` is given. Each supervisor carries out its worker's order."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()  # a collection in a fork would copy the shared memory
    stdin = socket.socket(fileno=0)
    client = Runner(stdin, int(lock)).serve() if lock else fork_supervisors(stdin)
    user = prepare_user() if client is not None else None
    received = receive_order(client) if client is not None else None
    if client is not None and received is not None:
        order, locks = received
        lead_orphans()
        client.setblocking(False)
        os.chdir(order.folder)
        supervisor = WarmSupervisor if order.kind == WARM else Supervisor
        supervisor(order, locks, client, user).run()
