"""The supervisor of a warm process: an agent's process that serves many turns, each of which is a run.

After a turn's result, the supervisor stops the agent's process group and kills leftover processes of tools. Then
it releases the writer's lock; the stopped agent cannot write until the next turn. The next turn comes as an order
over the socket `warm.sock` in the workspace's folder of runs. The line `end <why>` ends the process at any time.
"""

import os
import select
import signal
import socket
import time
from contextlib import suppress

from septet.agents.processes.confined import REPORT
from septet.agents.processes.order import Order, receive_beginning, receive_rest
from septet.agents.processes.own_user import RunUser
from septet.agents.processes.process_tree import are_stopped, descendants, group_of, read_file
from septet.agents.processes.resource_limits import ResourceWatch
from septet.agents.proxy.network_log import open_log
from septet.agents.supervisor.agent_process import NEVER
from septet.agents.supervisor.agent_run import WHY_LIMIT, Supervisor
from septet.agents.supervisor.warm_pipes import WarmPipes

TURN_SOCKET = "../warm.sock"
LOOK_SECONDS = 0.001
STOP_SECONDS = 15.0
"""The longest wait for an agent to stop; a busy disk can delay the stop, and a new agent takes seconds to
start."""
AGAIN_SECONDS = 0.5
"""The seconds after which a process that does not stop is continued for a moment: a thread that starts a program
waits in the kernel until the program has begun, and waits forever if the program was stopped first."""
REQUEST_SECONDS = 2.0
"""The longest wait, in seconds, for a client to send its whole order or request."""


class WarmSupervisor(Supervisor):
    """Supervises one warm process, from the first turn to the end of the process."""

    def __init__(self, order: Order, locks: list[int], client: socket.socket, user: RunUser | None = None) -> None:
        """Take the order for the first turn; the third of the locks shows that the process lives."""
        super().__init__(order, locks, client, user)
        self.lock = locks[2]
        self.turn_listener = socket.socket(socket.AF_UNIX)
        self.pipes = WarmPipes(self.poller, self.outputs)
        self.is_idle = self.is_ending = False
        self.next_order: Order | None = None

    def run(self) -> None:
        """Serve turns until a turn ends without a result, or no further turn comes."""
        self.handle_signals()
        self.listen_for_turns()
        self.listen()
        started_at = time.time()
        self.start()
        self.send_prompt()
        while self.carry_turn():
            self.finish(started_at)
            self.release_turn()
            self.await_order()
            order = self.next_order
            started_at = time.time()
            if order is None or self.status is not None or not self.begin_turn(order):
                self.sweep()  # the free locks show that an order was not begun
                self.release_process()
                return
        self.sweep()
        self.pipes.read_rest()
        self.release_process()
        self.finish(started_at)
        self.await_proxy()

    def listen_for_turns(self) -> None:
        """Open the socket for further turns; replace a socket that a killed supervisor left."""
        if os.access(TURN_SOCKET, os.F_OK):
            os.unlink(TURN_SOCKET)
        mask = os.umask(0o177)
        self.turn_listener.bind(TURN_SOCKET)
        os.umask(mask)
        self.turn_listener.listen()
        self.poller.register(self.turn_listener.fileno(), select.POLLIN)

    def release_process(self) -> None:
        """After the end of the process, empty its lock file and release the lock."""
        self.turn_listener.close()
        os.ftruncate(self.lock, 0)
        os.close(self.lock)

    def open_files(self) -> tuple[int, ...]:
        """Make the pipes, and return the descriptors that become the agent's stdin, stdout and stderr."""
        return self.pipes.open()

    def send_prompt(self) -> None:
        """Send the turn's prompt to the agent."""
        if self.agent:
            mark = read_file("/proc/sys/kernel/random/uuid").decode().strip()
            self.pipes.write_stdin(self.pipes.stream.begin_turn(read_file("prompt.md"), mark))

    def carry_turn(self) -> bool:
        """Supervise a turn to its end; return whether the agent printed a result and is stopped now."""
        while self.agent and self.status is None and time.monotonic() < self.give_up_at:
            if self.pipes.stream.is_over and not self.cause and self.pipes.write_pending():
                return self.stop_agent()
            self.wait()
            self.reap()
            self.hold_limits()
        return False

    def stop_agent(self) -> bool:
        """Stop the agent, kill its tools' leftovers and read its output; return whether the agent is stopped.

        Processes in the agent's group, such as servers of tools, are stopped; only git is killed.
        """
        self.signal_group(signal.SIGSTOP)
        bound, again_at = time.monotonic() + STOP_SECONDS, time.monotonic() + AGAIN_SECONDS
        while not (are_stopped(group_of(self.agent)) and self.sweep_tools()):
            self.reap()
            if self.status is None and time.monotonic() > bound:
                self.cause, self.why = "ended", "after_result"
            if self.status is not None or self.cause:
                return False
            if time.monotonic() > again_at:
                self.signal_group(signal.SIGCONT)
                time.sleep(0.02)
                self.signal_group(signal.SIGSTOP)
                again_at = time.monotonic() + AGAIN_SECONDS
            time.sleep(LOOK_SECONDS)
        self.pipes.read_outputs()
        self.reap()
        return self.status is None

    def sweep_tools(self) -> bool:
        """Kill the agent's descendants outside its process group; return true if there were none to kill.

        Any git in the group is killed too, because a stopped git would keep the repository's locks.
        """
        own = {pid for pid in group_of(self.agent) if not read_file(f"/proc/{pid}/comm").startswith(b"git")}
        tools = [pid for pid in descendants(os.getpid()) if pid not in own and pid not in {self.agent, *self.own}]
        for pid in tools:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.swept_count += 0 if self.order.confined else len(tools)
        return not tools

    def release_turn(self) -> None:
        """Close the files, the lock and the sockets of a finished turn's run."""
        self.pipes.unwatch()
        for descriptor in (self.listener.fileno(), *self.clients):
            self.poller.unregister(descriptor)
        self.listener.close()
        for client, _ in self.clients.values():
            client.close()
        self.clients = {}
        for descriptor in (*self.outputs, self.run_lock):
            os.close(descriptor)
        self.outputs.clear()
        self.attached_at = time.monotonic()
        self.is_idle, self.next_order = True, None

    def await_order(self) -> None:
        """Wait for the next turn's order, but no longer than the orphan limit, and not after a failed turn."""
        while (
            self.next_order is None
            and self.status is None
            and not (self.is_ending or self.pipes.stream.has_failed)
        ):
            if time.monotonic() >= self.next_look():
                return
            self.wait()
            self.reap()

    def next_look(self) -> float:
        """Return the next time, by the monotonic clock, at which to check a limit."""
        return self.attached_at + self.order.limits.orphan_seconds if self.is_idle else super().next_look()

    def end_agent(self, cause: str, why: str = "") -> None:
        """Request the agent's end; between turns, only note that no further turn may begin."""
        if self.is_idle:
            self.is_ending = True
        else:
            super().end_agent(cause, why)

    def begin_turn(self, order: Order) -> bool:
        """Begin the turn of an order; return false if the turn's files cannot be made."""
        report = f"{self.order.folder}/{REPORT}"
        self.order, self.is_idle = order, False
        self.cause = self.why = ""
        self.printed_bytes = self.swept_count = 0
        self.kill_at = self.give_up_at = NEVER
        self.began_at = self.printed_at = self.attached_at = time.monotonic()
        self.watch = ResourceWatch(order, time.time())
        self.listener = socket.socket(socket.AF_UNIX)
        try:
            os.chdir(order.folder)
            if order.confined:  # each turn's folder has a link to the one report that the sandbox extends
                os.link(report, REPORT)
            self.listen()
            if self.way_out is not None:
                self.way_out.send_log(open_log())
            self.open_outputs()
        except OSError:
            if self.outputs:  # a run with a stream counts as started
                os.unlink("stdout.jsonl")
            return False
        self.sign_lock()
        self.pipes.watch()
        self.signal_group(signal.SIGCONT)
        self.send_prompt()
        return True

    def read_descriptor(self, descriptor: int) -> None:
        """Handle a descriptor that is ready: a pipe of the agent, a new client, or an attached attempt."""
        if descriptor in self.pipes.output_numbers:
            if self.pipes.read_output(descriptor):
                self.printed_at = time.monotonic()
        elif descriptor == self.pipes.stdin:
            self.pipes.write_stdin()
        elif descriptor == self.turn_listener.fileno():
            self.accept_request()
        elif descriptor in self.clients:
            super().read_descriptor(descriptor)

    def accept_request(self) -> None:
        """Read the request of a new client: an order for the next turn, or the line `end <why>`."""
        try:
            client, _ = self.turn_listener.accept()
        except OSError:
            return
        client.settimeout(REQUEST_SECONDS)
        order = None
        locks: list[int] = []
        try:
            data, locks = receive_beginning(client)
            if data.startswith(b"end "):
                self.end_agent("ended", data[4 : 4 + WHY_LIMIT].decode("utf-8", "replace").strip())
            elif self.is_idle and self.next_order is None and len(locks) > 1:
                order = receive_rest(client, data)
        except OSError:
            order = None
        if order is None:
            client.close()
            for lock in locks:
                os.close(lock)
        else:
            client.setblocking(False)
            self.next_order, self.clients = order, {client.fileno(): (client, b"")}
            self.writer_lock, self.run_lock = locks[:2]

    def exit_code(self) -> int | None:
        """Return the agent's exit code; 0 for a stopped agent that has printed a result."""
        return 0 if self.pipes.stream.is_over and self.status is None and not self.cause else super().exit_code()
