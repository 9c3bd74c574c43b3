"""How a supervisor's fork becomes the agent."""

import os
import signal

from septet.agents.processes.control_group import GuestGroup
from septet.agents.processes.order import Order
from septet.agents.processes.own_user import RunUser, StagedFiles
from septet.agents.processes.process_tree import die_with_parent
from septet.agents.processes.resource_limits import limit_own_process


class AgentStart:
    """What a supervisor's fork needs to become the agent."""

    def __init__(self, order: Order, argv: tuple[str, ...], files: tuple[int, ...]) -> None:
        """Take the order, the arguments with what is around them, and stdin, stdout and stderr."""
        self.order = order
        self.argv = argv
        self.files = files
        self.staged: StagedFiles | None = None
        """What the guest sees of files, where it is started as a user of its own."""
        self.user: RunUser | None = None
        """That user."""
        self.group: GuestGroup | None = None
        """The control group that it enters, where there is one."""


def exec_agent(start: AgentStart, report: int, supervisor: int) -> None:
    """Turn this process, just forked, into the agent; never return.

    It dies with its supervisor: so a lock that is free says that the agent is dead.
    """
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        die_with_parent()
        for target, source in enumerate(start.files):
            os.dup2(source, target)
        os.chdir(start.order.directory)
        limit_own_process(start.order, has_own_user=start.staged is not None)
        if start.group is not None:
            start.group.enter()
        if start.staged is not None and start.user is not None:
            start.staged.become_user(start.user)
        if os.getppid() == supervisor:
            os.execve(start.argv[0], start.argv, start.order.env)  # noqa: S606 -- no shell is the point
    except OSError as error:
        os.write(report, str(error.errno).encode())
    finally:
        os._exit(127)
