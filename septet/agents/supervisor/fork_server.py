"""The fork server: a small process that forks supervisors.

`start.py` runs it. With a socket as stdin it waits there for further sockets, and forks a supervisor for each
of them; it ends by itself when its worker dies. A runner (`runner.py`) does the same for any number of workers.
"""

import gc
import os
import signal
import socket

from septet.agents.processes.order import WARM, receive_order
from septet.agents.processes.own_user import prepare_user
from septet.agents.processes.process_tree import lead_orphans
from septet.agents.supervisor.agent_run import Supervisor
from septet.agents.supervisor.runner import Runner, fork_or_refuse, move_to_stdin
from septet.agents.supervisor.warm_process import WarmSupervisor


def fork_supervisors(worker: socket.socket) -> socket.socket | None:
    """Fork a supervisor for each socket that the worker sends.

    Returns:
        In the supervisor, its socket; in this process `None`, when the worker is gone.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for supervisors
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
    """Wait to become a supervisor, then for an order, and carry it out; with a lock, as a runner."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()  # what forks collect is their own: to look through the rest would copy its memory
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
