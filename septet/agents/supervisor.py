r"""The supervisor of one agent run: a small program of its own, which outlives the worker that started it.

`supervise.py` runs the nursery: with a socket as stdin it waits there for further sockets, and forks a supervisor
for each of them; it ends by itself when its worker dies. The supervisor waits on its socket for an order. Then it
starts the agent in a session of its own, holds the limits, ends and sweeps, tells everyone who is attached, and
leaves `exit.json`. It and the two modules of ours that it uses import only small modules of the standard library,
and there is no thread before a fork.

An order is `<length>\n` and fields with a NUL between them, as a program's arguments have them: run folder,
working directory, wall, idle, grace and orphan limits in seconds, number of arguments, arguments, environment.
With it come two descriptors: the lock of the workspace's one writer, and the lock that says that this run lives.
The agent gets neither. On the socket `control.sock` an attempt attaches; it may send `end <why>\n`, and gets
`ended <json>\n`.
"""

import errno
import os
import select
import time

from septet.agents.exit_file import as_json, leave, moment
from septet.agents.process_tree import die_with_parent, identity, kill_below, lead_orphans

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
else:
    # What `signal` and `socket` add to these, enums above all, takes longer to import than all else here.
    import _signal as signal
    import _socket as socket

NEVER = float("inf")
TICKS_PER_IDLE_LIMIT = 20
LONGEST_TICK_SECONDS = 5.0
SWEEP_SECONDS = 2.0
"""How long what the agent left is killed and waited for; what still lives then hangs in the kernel."""
UNKILLABLE_SECONDS = 2.0
"""How long a killed agent is waited for."""
WHY_LIMIT = 60
DESCRIPTOR_BYTES = 4


class Order:
    """What to run, where, and within which limits."""

    def __init__(self, payload: bytes, locks: list[int]) -> None:
        """Read the fields; `locks` are the writer's and the run's."""
        fields = payload.split(b"\0")
        self.folder, self.directory = fields[:2]
        self.wall_seconds, self.idle_seconds, self.grace_seconds, self.orphan_seconds = map(float, fields[2:6])
        rest = 7 + int(fields[6])
        self.argv = fields[7:rest]
        self.env = dict(pair.split(b"=", 1) for pair in fields[rest:])
        self.writer_lock, self.run_lock = locks


class Supervisor:
    """One agent, from its start to its record."""

    def __init__(self, order: Order, starter: socket.socket) -> None:
        """Take the order; `starter` is the first who is attached."""
        self.order = order
        self.clients = {starter.fileno(): (starter, b"")}
        self.listener = socket.socket(socket.AF_UNIX)
        self.wakeup, self.wakeup_writer = os.pipe()
        self.poller = select.poll()
        self.agent = 0
        self.identity: dict[str, str | float | None] = {}
        self.status: int | None = None
        self.cause = self.why = ""
        self.outputs: list[int] = []
        self.printed = self.swept = 0
        self.begin = self.heard = self.attached = time.monotonic()
        self.kill_at = self.give_up_at = NEVER

    def run(self) -> None:
        """Carry the order out to its end."""
        self.listen()
        started_at = time.time()
        self.start()
        while self.agent and self.status is None and time.monotonic() < self.give_up_at:
            self.wait()
            self.reap()
            self.hold_limits()
        self.sweep()
        self.finish(started_at)

    def listen(self) -> None:
        """Open the socket, by its short relative name that no limit of 108 bytes meets, and hear signals."""
        mask = os.umask(0o177)
        self.listener.bind("control.sock")
        os.umask(mask)
        self.listener.listen()
        os.set_blocking(self.wakeup_writer, False)
        signal.set_wakeup_fd(self.wakeup_writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for descriptor in (self.listener.fileno(), self.wakeup, *self.clients):
            self.poller.register(descriptor, select.POLLIN)

    def start(self) -> None:
        """Start the agent, and learn at once when the system refuses."""
        try:
            self.agent = self.start_agent()
        except OSError as error:
            self.cause, self.why = "not_started", f"{errno.errorcode.get(error.errno or 0, '')}: {error.strerror}"
        self.identity = identity(self.agent)
        os.write(self.order.run_lock, as_json({"supervisor_pid": os.getpid(), **self.identity}))

    def start_agent(self) -> int:
        """Return the agent's process id.

        Raises:
            OSError: The program cannot be started, or its files cannot be made.
        """
        for name in ("stdout.jsonl", "stderr.log"):
            self.outputs.append(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600))
        os.dup2(self.outputs[1], 2)
        prompt = os.open("prompt.md", os.O_RDONLY)
        answer, report = os.pipe()
        supervisor = os.getpid()
        agent = os.fork()
        if agent == 0:
            become_agent(self.order, (prompt, *self.outputs), report, supervisor)
        os.close(report)
        os.close(prompt)
        refusal = os.read(answer, 16)
        os.close(answer)
        if refusal:
            os.waitpid(agent, 0)
            raise OSError(int(refusal), os.strerror(int(refusal)))
        return agent

    def wait(self) -> None:
        """Sleep until something happens or is due, and hear it."""
        due = min(self.next_look() - time.monotonic(), LONGEST_TICK_SECONDS)
        for descriptor, _ in self.poller.poll(max(due * 1000, 1)):
            if descriptor == self.wakeup:
                if signal.SIGTERM in os.read(self.wakeup, 4096):
                    self.end("terminated")
            elif descriptor == self.listener.fileno():
                self.attach()
            else:
                self.hear(descriptor)

    def next_look(self) -> float:
        """Return the moment at which a limit has to be looked at next."""
        tick = time.monotonic() + self.order.idle_seconds / TICKS_PER_IDLE_LIMIT
        orphaned = NEVER if self.clients else self.attached + self.order.orphan_seconds
        return min(tick, self.begin + self.order.wall_seconds, orphaned, self.kill_at, self.give_up_at)

    def attach(self) -> None:
        """Let an attempt attach."""
        try:
            descriptor, _ = self.listener._accept()  # type: ignore[attr-defined] # noqa: SLF001 -- what `accept` calls
        except OSError:
            return
        client = socket.socket(fileno=descriptor)
        client.setblocking(False)  # noqa: FBT003 -- the socket's own signature
        self.clients[client.fileno()] = (client, b"")
        self.poller.register(client.fileno(), select.POLLIN)

    def hear(self, descriptor: int) -> None:
        """Read what an attempt says; one that has gone is forgotten."""
        client, before = self.clients[descriptor]
        try:
            data = client.recv(4096)
        except OSError:
            data = b""
        if not data:
            self.poller.unregister(descriptor)
            del self.clients[descriptor]
            client.close()
            self.attached = time.monotonic()
            return
        *lines, rest = (before + data).split(b"\n")
        self.clients[descriptor] = (client, rest[-4096:])
        for line in lines:
            if line.startswith(b"end "):
                self.end("ended", line[4 : 4 + WHY_LIMIT].decode("utf-8", "replace"))

    def reap(self) -> bool:
        """Take leave of every child that has ended; return whether there are others."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.agent:
                self.status = status

    def hold_limits(self) -> None:
        """End the agent that has reached a limit, and kill the one that does not end."""
        now = time.monotonic()
        printed = sum(os.fstat(output).st_size for output in self.outputs)
        if printed != self.printed:
            self.printed, self.heard = printed, now
        if now >= self.kill_at:
            self.signal_group(signal.SIGKILL)
            self.kill_at, self.give_up_at = NEVER, now + UNKILLABLE_SECONDS
        elif now >= self.begin + self.order.wall_seconds:
            self.end("wall_limit")
        elif now >= self.heard + self.order.idle_seconds:
            self.end("idle_limit")
        elif not self.clients and now >= self.attached + self.order.orphan_seconds:
            self.end("orphan_limit")

    def end(self, cause: str, why: str = "") -> None:
        """Ask the agent to end; the first reason counts. A stopped process hears nothing before it is woken."""
        if not self.cause and self.status is None:
            self.cause, self.why = cause, why
            self.kill_at = time.monotonic() + self.order.grace_seconds
            self.signal_group(signal.SIGTERM)
            self.signal_group(signal.SIGCONT)

    def signal_group(self, number: int) -> None:
        """Signal the agent's process group; one that is gone is no error."""
        try:
            if self.agent:
                os.killpg(self.agent, number)
        except OSError:
            return

    def sweep(self) -> None:
        """Kill and reap what the agent left, in whatever session: as its sub-reaper we are its ancestor."""
        self.signal_group(signal.SIGKILL)
        killed: set[int] = set()
        bound = time.monotonic() + SWEEP_SECONDS
        while self.reap() and time.monotonic() < bound:
            killed |= kill_below(os.getpid())
            time.sleep(0.001)
        self.swept = len(killed)

    def finish(self, started_at: float) -> None:
        """Let the next writer in, tell everyone, and then leave the record on disk."""
        os.close(self.order.writer_lock)
        code = os.waitstatus_to_exitcode(self.status) if self.status is not None else None
        ended_at = time.time()
        record = as_json(
            {
                "cause": self.cause or "exited",
                "why": self.why,
                "exit_code": code if code is None or code >= 0 else None,
                "signal": -code if code is not None and code < 0 else None,
                "started_at": moment(started_at),
                "ended_at": moment(ended_at),
                "duration_seconds": round(time.monotonic() - self.begin, 3),
                "swept": self.swept,
                **self.identity,
            }
        )
        for client, _ in self.clients.values():
            try:
                client.send(b"ended " + record + b"\n")
            except OSError:
                continue
        leave("exit.json", record, self.outputs)


def become_agent(order: Order, files: tuple[int, ...], report: int, supervisor: int) -> None:
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
            os.execve(order.argv[0], order.argv, order.env)  # noqa: S606 -- no shell is the point
    except OSError as error:
        os.write(report, str(error.errno).encode())
    finally:
        os._exit(127)


def receive(worker: socket.socket) -> Order | None:
    """Wait for the order; `None` when the worker is gone."""
    data, messages, _, _ = worker.recvmsg(65536, socket.CMSG_SPACE(2 * DESCRIPTOR_BYTES))
    locks = [lock for _, _, descriptors in messages for lock in memoryview(descriptors).cast("i")]
    while not complete(data):
        more = worker.recv(1 << 20)
        if not more:
            return None
        data += more
    for lock in locks:
        os.set_inheritable(lock, False)  # noqa: FBT003 -- its own signature
    return Order(data.partition(b"\n")[2], locks)


def complete(data: bytes) -> bool:
    """Whether the whole order is there."""
    length, newline, payload = data.partition(b"\n")
    return bool(newline) and len(payload) >= int(length)


def born(worker: socket.socket) -> socket.socket | None:
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


def main() -> None:
    """Wait for a birth, then for an order, and carry it out."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    starter = born(socket.socket(fileno=0))
    order = receive(starter) if starter is not None else None
    if starter is not None and order is not None:
        lead_orphans()
        starter.setblocking(False)  # noqa: FBT003 -- the socket's own signature
        os.chdir(order.folder)
        Supervisor(order, starter).run()
