"""The nursery: a small process that forks supervisors.

`start.py` runs it. With a socket as stdin it waits there for further sockets, and forks a supervisor for each
of them; it ends by itself when its worker dies. A runner (`runner.py`) does the same for any number of workers.
Part of the supervisor's program: it imports only small modules of the standard library.
"""

import os

from septet.agents.supervisor.agent_run import Supervisor
from septet.agents.supervisor.order import DESCRIPTOR_BYTES, receive
from septet.agents.supervisor.process_tree import lead_orphans
from septet.agents.supervisor.runner import Runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
else:
    import _signal as signal  # without the enums, which take long to import
    import _socket as socket


def forked(worker: socket.socket) -> socket.socket | None:
    """Fork a supervisor for each socket that the worker sends.

    Returns:
        In the supervisor, its socket; in this process `None`, when the worker is gone.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for supervisors
    while True:
        births, messages, _, _ = worker.recvmsg(1, socket.CMSG_SPACE(DESCRIPTOR_BYTES))
        sockets = [found for _, _, descriptors in messages for found in memoryview(descriptors).cast("i")]
        if not births or not sockets:
            return None
        if fork_or_refuse() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            worker.close()  # it was 0, which stays taken: what an agent gets as 0 to 2 is opened above them
            os.dup2(sockets[0], 0, inheritable=False)
            os.close(sockets[0])
            return socket.socket(fileno=0)
        os.close(sockets[0])


def fork_or_refuse() -> int:
    """Return what `fork` does, and -1 where the machine refuses: the worker sees its socket closed."""
    try:
        return os.fork()
    except OSError:
        return -1


def main(lock: str = "") -> None:
    """Wait for a birth, then for an order, and carry it out; with a lock, as a runner."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    given = socket.socket(fileno=0)
    starter = Runner(given, int(lock)).serve() if lock else forked(given)
    order = receive(starter) if starter is not None else None
    if starter is not None and order is not None:
        lead_orphans()
        starter.setblocking(False)  # noqa: FBT003 -- the socket's own signature
        os.chdir(order.folder)
        if order.warm_lock is None:
            Supervisor(order, starter).run()
        else:
            from septet.agents.supervisor.warm_process import WarmSupervisor

            WarmSupervisor(order, starter, order.warm_lock).run()
