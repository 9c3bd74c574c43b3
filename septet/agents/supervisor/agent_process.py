"""An agent's process: its start, with sandbox, proxy and recorder, and signals to the process."""

import json
import os
import signal
import time
from contextlib import suppress

from septet.agents.processes.confined import REPORT, SandboxStart, report_to
from septet.agents.processes.control_group import GuestGroup, find_parent, make_group
from septet.agents.processes.order import Order
from septet.agents.processes.own_user import RunUser, StagedFiles
from septet.agents.processes.process_tree import die_with_parent, group_of
from septet.agents.processes.resource_limits import ResourceWatch, limit_own_process
from septet.agents.proxy.way_out import ENDED_BEFORE, WayOut
from septet.agents.supervisor.recorder import OutputRecorder, open_prompt

NEVER = float("inf")


class AgentProcess:
    """An agent's process and proxy, and the recorder that copies the agent's output to disk."""

    def __init__(self, order: Order, locks: list[int], user: RunUser | None, watch: ResourceWatch) -> None:
        """Take the order with its locks, the guest's user, and the object that checks the guest's resources."""
        self.order = order
        self.user = user
        self.writer_lock, self.run_lock = locks[:2]
        self.agent = 0
        self.agent_identity: dict[str, str | float | None] = {}
        self.status: int | None = None
        self.cause = self.why = ""
        self.kill_at = NEVER
        self.watch = watch
        self.staged: StagedFiles | None = None
        self.group: GuestGroup | None = None
        self.way_out: WayOut | None = None
        self.recorder: OutputRecorder | None = None
        self.outputs: list[int] = []

    def start_agent(self) -> int:
        """Start the agent, and return its process id."""
        self.open_outputs()
        argv, closing = self.confine()
        files = self.open_files()
        parent, _ = find_parent()
        self.group = make_group(self.watch.memory_bytes, self.order.limits.processes, parent)
        if self.staged is not None and self.user is None:
            self.user = RunUser()
        refusals, report = os.pipe()
        supervisor = os.getpid()
        agent = os.fork()
        if agent == 0:
            self.become_agent(argv, files, report, supervisor)
        os.close(report)
        self.start_beside(agent)
        for descriptor in (*closing, *files):
            os.close(descriptor)
        refusal = os.read(refusals, 16)
        os.close(refusals)
        if refusal:
            os.waitpid(agent, 0)
            raise OSError(int(refusal), os.strerror(int(refusal)))
        why = self.way_out.await_listening() if self.way_out is not None else ""
        if why and why != ENDED_BEFORE:  # the proxy has failed: the guest dies before its start
            self.cause, self.why = "not_started", why
            self.kill_at = time.monotonic()
        return agent

    def sign_lock(self) -> None:
        """Write into the run's lock file which supervisor holds the lock, and for which agent."""
        with suppress(OSError):  # a full disk: the lock itself counts, its content is for people
            os.write(self.run_lock, json.dumps({"supervisor_pid": os.getpid(), **self.agent_identity}).encode())

    def become_agent(self, argv: tuple[str, ...], files: tuple[int, ...], report: int, supervisor: int) -> None:
        """Turn this new fork into the agent, which dies with its supervisor; never return."""
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            die_with_parent()
            for target, source in enumerate(files):
                os.dup2(source, target)
            os.chdir(self.order.directory)
            limit_own_process(self.order, has_own_user=self.staged is not None)
            if self.group is not None:
                self.group.enter()
            if self.staged is not None and self.user is not None:
                self.staged.become_user(self.user)
            if os.getppid() == supervisor:
                os.execve(argv[0], argv, self.order.env)
        except OSError as error:
            os.write(report, str(error.errno).encode())
        finally:
            os._exit(127)

    def start_beside(self, agent: int) -> None:
        """Start the guest's proxy, if there is one, and the recorder; kill the agent if a start fails."""
        try:
            if self.way_out is not None:
                self.way_out.start()
            if self.recorder is not None:
                self.recorder.start()
        except OSError:
            os.kill(agent, signal.SIGKILL)  # before its pipes close, which would let it begin
            os.waitpid(agent, 0)
            raise

    def confine(self) -> tuple[tuple[str, ...], list[int]]:
        """Return the command line that starts the agent, and the descriptors that only the agent needs."""
        order = self.order
        if not order.confined:
            return order.argv, []
        report = os.open(REPORT, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        os.set_inheritable(report, True)
        if order.confinement is None:  # an order of an earlier release has bubblewrap among its arguments
            return (order.argv[0], *report_to(report), *order.argv[1:]), [report]
        if order.confinement.network is not None:
            self.way_out = WayOut(order.confinement.network)
        options = self.way_out.options if self.way_out is not None else ()
        start = SandboxStart(order.confinement, order.argv, report, options)
        self.staged = start.staged
        return start.argv, [*start.descriptors, report]

    def open_outputs(self) -> None:
        """Create the files for stdout and stderr; this process's own errors also go to the file for stderr."""
        for name in ("stdout.jsonl", "stderr.log"):
            self.outputs.append(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600))
        os.dup2(self.outputs[1], 2)

    def open_files(self) -> tuple[int, ...]:
        """Return the descriptors that become the agent's stdin, stdout and stderr."""
        prompt = open_prompt("prompt.md")
        self.recorder = OutputRecorder(
            self.outputs, self.order.limits.output_bytes, (self.writer_lock, self.run_lock)
        )
        return (prompt, *self.recorder.writers)

    def signal_group(self, number: int) -> None:
        """Send a signal to the agent's process group; ignore a missing group.

        In a sandbox, bubblewrap gets no SIGTERM, because bubblewrap would then kill the processes inside.
        """
        with suppress(OSError):
            if self.order.confined and number == signal.SIGTERM:
                for pid in group_of(self.agent):
                    if pid != self.agent:
                        os.kill(pid, number)
            elif self.agent:
                os.killpg(self.agent, number)

    @property
    def proxy(self) -> int:
        """The process id of the guest's proxy; 0 without a proxy."""
        return self.way_out.pid if self.way_out is not None else 0

    @property
    def own(self) -> set[int]:
        """The process ids of the supervisor's own children: the proxy and the recorder."""
        return {self.proxy, self.recorder.pid if self.recorder is not None else 0}
