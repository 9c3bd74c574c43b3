"""How a supervisor's fork becomes the agent."""

import os
import signal

from septet.agents.supervisor.order import Order
from septet.agents.supervisor.process_tree import die_with_parent


def exec_agent(order: Order, argv: tuple[str, ...], files: tuple[int, ...], report: int, supervisor: int) -> None:
    """Turn this process, just forked, into the agent; never return.

    It dies with its supervisor: so a lock that is free says that the agent is dead.
    """
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        die_with_parent()
        for target, source in enumerate(files):
            os.dup2(source, target)
        os.chdir(order.directory)
        if os.getppid() == supervisor:
            os.execve(argv[0], argv, order.env)  # noqa: S606 -- no shell is the point
    except OSError as error:
        os.write(report, str(error.errno).encode())
    finally:
        os._exit(127)
