r"""The supervisor of one agent run: a separate program, which survives the worker that started it.

The fork server or a runner forks the supervisor, which then receives an `Order`. The supervisor starts the agent
in a separate session, enforces limits, ends the agent, kills leftover processes, and writes `exit.json`.

The agent gets none of the locks that come with the order. An attempt connects to the socket `control.sock`. The
attempt may send `end <why>\n`, and receives `ended <json>\n` when the agent has ended.
"""

import errno
import json
import os
import select
import signal
import socket
import time
from contextlib import suppress

from septet.agents.processes.confined import REPORT, exit_code_inside, start_failure
from septet.agents.processes.order import Order
from septet.agents.processes.own_user import RunUser
from septet.agents.processes.process_tree import has_others, identity, kill_below, read_file, utc_text
from septet.agents.processes.resource_limits import LOOK_SECONDS, ResourceWatch
from septet.agents.supervisor.agent_process import NEVER, AgentProcess
from septet.agents.supervisor.recorder import write_record

TICKS_PER_IDLE_LIMIT = 20
LONGEST_TICK_SECONDS = 5.0
BACKGROUND_SECONDS = 5.0
"""The longest wait for the background processes of an agent that ended well: they may still write a file."""
SWEEP_SECONDS, SWEEP_TICK_SECONDS = 2.0, 0.001
"""The longest sweep, and the pause between its checks; a process that lives longer hangs in the kernel."""
RECORD_SECONDS = 10.0
"""The longest wait, in seconds, for the recorder to write the bytes that are in the pipes."""
END_SECONDS = 0.5
"""The longest wait for a sandbox, and then for its proxy, to end without a kill."""
UNKILLABLE_SECONDS = 2.0
"""The longest wait for a killed agent."""
WHY_LIMIT = 60


class Supervisor(AgentProcess):
    """Supervises one agent, from the agent's start to the record of its end."""

    def __init__(self, order: Order, locks: list[int], client: socket.socket, user: RunUser | None = None) -> None:
        """Take the order, its locks' descriptors, the connection of the first attempt, and the guest's user."""
        super().__init__(order, locks, user, ResourceWatch(order, time.time()))
        self.clients = {client.fileno(): (client, b"")}
        self.listener = socket.socket(socket.AF_UNIX)
        self.wakeup, self.wakeup_writer = os.pipe()
        self.poller = select.poll()
        self.printed_bytes = self.swept_count = 0
        self.began_at = self.printed_at = self.attached_at = time.monotonic()
        self.give_up_at = NEVER
        self.look_at = self.began_at + LOOK_SECONDS

    def run(self) -> None:
        """Carry out the order: start the agent, check its limits, and record its end."""
        self.handle_signals()
        started_at = time.time()
        self.start()
        self.listen()
        while self.agent and self.status is None and time.monotonic() < self.give_up_at:
            self.wait()
            self.reap()
            self.hold_limits()
        self.await_background()
        self.sweep()
        self.finish(started_at)
        self.await_proxy()

    def await_proxy(self) -> None:
        """Wait briefly for the proxy to end; a proxy that hangs dies with this process."""
        bound = time.monotonic() + END_SECONDS
        while self.reap() and time.monotonic() < bound:
            self.await_child()

    def listen(self) -> None:
        """Open the socket for attempts; a relative name keeps the address below the limit of 108 bytes."""
        mask = os.umask(0o177)
        self.listener.bind("control.sock")
        os.umask(mask)
        self.listener.listen()
        for descriptor in (self.listener.fileno(), *self.clients):
            self.poller.register(descriptor, select.POLLIN)

    def handle_signals(self) -> None:
        """Make SIGCHLD and SIGTERM wake the poller."""
        os.set_blocking(self.wakeup_writer, False)
        signal.set_wakeup_fd(self.wakeup_writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        self.poller.register(self.wakeup, select.POLLIN)

    def start(self) -> None:
        """Start the agent, or note why the system refused."""
        try:
            self.agent = self.start_agent()
        except OSError as error:
            self.cause, self.why = "not_started", f"{errno.errorcode.get(error.errno or 0, '')}: {error.strerror}"
        self.agent_identity = identity(self.agent)
        self.sign_lock()

    def wait(self) -> None:
        """Wait for the next event or limit, and handle the event."""
        due = min(self.next_look() - time.monotonic(), LONGEST_TICK_SECONDS)
        for descriptor, _ in self.poller.poll(max(due * 1000, 1)):
            if descriptor == self.wakeup:
                if signal.SIGTERM in os.read(self.wakeup, 4096):
                    self.end_agent("terminated")
            elif descriptor == self.listener.fileno():
                self.accept_client()
            else:
                self.read_descriptor(descriptor)

    def next_look(self) -> float:
        """Return the next time, by the monotonic clock, at which to check a limit."""
        limits = self.order.limits
        tick = time.monotonic() + limits.idle_seconds / TICKS_PER_IDLE_LIMIT
        orphaned_at = NEVER if self.clients else self.attached_at + limits.orphan_seconds
        return min(
            self.look_at, tick, self.began_at + limits.wall_seconds, orphaned_at, self.kill_at, self.give_up_at
        )

    def accept_client(self) -> None:
        """Accept the connection of a worker that makes an attempt at the turn."""
        try:
            client, _ = self.listener.accept()
        except OSError:
            return
        client.setblocking(False)
        self.clients[client.fileno()] = (client, b"")
        self.poller.register(client.fileno(), select.POLLIN)

    def read_descriptor(self, descriptor: int) -> None:
        """Read an attempt's request, or forget an attempt that has closed its connection."""
        client, unread = self.clients[descriptor]
        try:
            data = client.recv(4096)
        except OSError:
            data = b""
        if not data:
            self.poller.unregister(descriptor)
            del self.clients[descriptor]
            client.close()
            self.attached_at = time.monotonic()
            return
        *lines, rest = (unread + data).split(b"\n")
        self.clients[descriptor] = (client, rest[-4096:])
        for line in lines:
            if line.startswith(b"end "):
                self.end_agent("ended", line[4 : 4 + WHY_LIMIT].decode("utf-8", "replace"))

    def reap(self) -> bool:
        """Reap ended children, and replace a killed proxy or recorder; return whether any child lives."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.agent:
                self.status = status
            elif self.way_out is not None and pid == self.way_out.pid:
                self.way_out.pid = 0
                if self.agent and self.status is None and self.way_out.listeners and not self.way_out.replace():
                    self.kill_agent("ended", "proxy_lost")
            elif self.recorder is not None and pid == self.recorder.pid:
                self.recorder.pid = 0
                if status != 0 and not self.recorder.replace():
                    self.kill_agent("ended", "recorder_lost")

    def hold_limits(self) -> None:
        """End an agent that has reached a limit; kill an agent that does not end in time."""
        now, limits = time.monotonic(), self.order.limits
        printed_bytes = sum(os.fstat(output).st_size for output in self.outputs)
        if printed_bytes != self.printed_bytes:
            self.printed_bytes, self.printed_at = printed_bytes, now
        if now >= self.kill_at:
            self.signal_group(signal.SIGKILL)
            self.kill_at, self.give_up_at = NEVER, now + UNKILLABLE_SECONDS
        elif now >= self.began_at + limits.wall_seconds:
            self.end_agent("wall_limit")
        elif now >= self.printed_at + limits.idle_seconds:
            self.end_agent("idle_limit")
        elif not self.clients and now >= self.attached_at + limits.orphan_seconds:
            self.end_agent("orphan_limit")
        elif 0 < limits.output_bytes < printed_bytes:
            self.kill_agent("output_limit", f"output limit of {limits.output_bytes >> 20} MiB reached")
        elif now >= self.look_at:
            self.look_at = now + LOOK_SECONDS
            self.kill_agent(*self.watch.look(os.getpid(), self.own))

    def kill_agent(self, cause: str, why: str) -> None:
        """Kill the agent at once, without grace; do nothing for an empty `cause`, or if the agent already ends."""
        if cause and not self.cause:
            self.end_agent(cause, why)
            self.kill_at = time.monotonic()

    def end_agent(self, cause: str, why: str = "") -> None:
        """Send SIGTERM to the agent and note the cause; do nothing if the agent already ends."""
        if not self.cause and self.status is None:
            self.cause, self.why = cause, why
            self.kill_at = time.monotonic() + self.order.limits.grace_seconds
            self.signal_group(signal.SIGTERM)
            self.signal_group(signal.SIGCONT)

    def await_background(self) -> None:
        """Wait briefly for the background processes of an unconfined agent that has succeeded."""
        bound = time.monotonic() + BACKGROUND_SECONDS
        waits = self.status == 0 and not (self.cause or self.order.confined)
        while waits and self.reap() and has_others(self.proxy) and (left := bound - time.monotonic()) > 0:
            ready = select.select([self.wakeup, self.listener.fileno(), *self.clients], [], [], left)[0]
            waits = ready == [self.wakeup] and signal.SIGTERM not in os.read(self.wakeup, 4096)

    def sweep(self) -> None:
        """Kill the agent's leftover processes, and wait until the proxy and the recorder have written everything.

        A sandbox first gets a moment, in which it ends its processes by itself.
        """
        self.signal_group(signal.SIGKILL)
        if self.way_out is not None:
            self.way_out.end()
        killed: set[int] = set()
        now = time.monotonic()
        kill_at, bound = now + (END_SECONDS if self.order.confined else 0.0), now + SWEEP_SECONDS
        while self.reap() and has_others(self.proxy) and (now := time.monotonic()) < bound:
            if now >= kill_at:
                killed |= kill_below(os.getpid(), self.own)
            self.await_child()
        if self.recorder is not None:
            bound = time.monotonic() + RECORD_SECONDS
            while self.recorder.pid and time.monotonic() < bound and self.reap():
                self.await_child()
            if self.recorder.pid:  # a full disk could take forever
                os.kill(self.recorder.pid, signal.SIGKILL)
        if self.group is not None and self.group.close() and not self.cause:
            self.cause, self.why = "memory_limit", self.watch.memory_words
        self.swept_count = 0 if self.order.confined else len(killed)
        if self.way_out is not None:
            self.way_out.await_log()

    def await_child(self) -> None:
        """Wait for the end of a child, for a millisecond at most."""
        if select.select([self.wakeup], [], [], SWEEP_TICK_SECONDS)[0]:
            os.read(self.wakeup, 4096)

    def exit_code(self) -> int | None:
        """Return the agent's exit code, negative for a signal; `None` if the agent hangs or never started."""
        code = os.waitstatus_to_exitcode(self.status) if self.status is not None else None
        if code is None or not self.order.confined:
            return code
        inside = exit_code_inside(code, read_file(REPORT))
        if inside is None and not self.cause:
            self.cause, self.why = "not_started", start_failure(read_file("stderr.log"))
        return inside

    def finish(self, started_at: float) -> None:
        """Release the writer's lock, send the record of the end to all attempts, and write the record to disk."""
        os.close(self.writer_lock)
        code = self.exit_code()
        ended_at = time.time()
        record = json.dumps(
            {
                "cause": self.cause or "exited",
                "why": self.why,
                "exit_code": code if code is None or code >= 0 else None,
                "signal": -code if code is not None and code < 0 else None,
                "started_at": utc_text(started_at),
                "ended_at": utc_text(ended_at),
                "duration_seconds": round(time.monotonic() - self.began_at, 3),
                "swept": self.swept_count,
                **self.agent_identity,
            }
        ).encode()
        for client, _ in self.clients.values():
            with suppress(OSError):
                client.send(b"ended " + record + b"\n")
        write_record("exit.json", record, self.outputs)
