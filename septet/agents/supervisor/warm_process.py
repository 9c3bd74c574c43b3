"""The supervisor of a warm process: an agent that serves many turns, each of them a run like any other.

It holds the agent's stdin, and pumps what it prints into the files of the current turn's run. With a turn's result
the agent's process group is stopped and what its tools left is killed, and only then the writer's lock is given
back: until the next turn the agent cannot write. That one comes as an order over the socket `warm.sock` in the
workspace's folder of runs, with the writer's lock and its run's; `end <why>` ends the process at any time.

Part of the supervisor's program: it imports only small modules of the standard library, beside `json`.
"""

import errno
import os
import select
import time

from septet.agents.supervisor.agent_run import NEVER, SWEEP_SECONDS, WHY_LIMIT, Supervisor
from septet.agents.supervisor.confined import REPORT
from septet.agents.supervisor.order import Order, beginning, remainder
from septet.agents.supervisor.process_tree import descendants, group_of, read_file, stands_still
from septet.agents.supervisor.warm_pipes import WarmPipes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
else:
    import _signal as signal  # without the enums, which take long to import
    import _socket as socket

DOOR = "../warm.sock"
LOOK_SECONDS = 0.001
EMPTY: "list[int]" = []
VISIT_SECONDS = 2.0
"""For whoever knocks to say what he wants."""


class WarmSupervisor(Supervisor):
    """One process, from its first turn to its end."""

    def __init__(self, order: Order, starter: socket.socket, lock: int) -> None:
        """Take the first turn's order; `lock` says that the process lives."""
        super().__init__(order, starter)
        self.lock = lock
        self.door = socket.socket(socket.AF_UNIX)
        self.pipes = WarmPipes(self.poller, self.outputs)
        self.resting = self.leaving = False
        self.next: Order | None = None

    def run(self) -> None:
        """Carry out turn after turn, until one does not end by its result or no other comes."""
        self.hear_signals()
        self.open_door()
        self.listen()
        started_at = time.time()
        self.start()
        self.ask()
        while self.carry():
            self.finish(started_at)
            self.leave_turn()
            self.await_turn()
            if self.next is None or self.status is not None:  # an order to a dead agent is given back by the locks
                self.sweep()
                self.close_door()
                return
            started_at = time.time()
            self.take(self.next)
        self.sweep()
        self.pipes.end()
        self.close_door()
        self.finish(started_at)

    def open_door(self) -> None:
        """Open the socket for further turns; that of a supervisor that was killed is in the way."""
        if os.access(DOOR, os.F_OK):
            os.unlink(DOOR)  # noqa: PTH108 -- pathlib takes long to import
        mask = os.umask(0o177)
        self.door.bind(DOOR)
        os.umask(mask)
        self.door.listen()
        self.poller.register(self.door.fileno(), select.POLLIN)

    def close_door(self) -> None:
        """Say that the process is gone and has left nothing."""
        self.door.close()
        os.ftruncate(self.lock, 0)
        os.close(self.lock)

    def open_files(self) -> tuple[int, ...]:
        """Return pipes: their other ends stay here."""
        return self.pipes.open()

    def close_files(self, files: tuple[int, ...]) -> None:
        """Close the agent's ends."""
        for descriptor in files:
            os.close(descriptor)

    def ask(self) -> None:
        """Give the agent the turn's prompt."""
        if self.agent:
            mark = read_file("/proc/sys/kernel/random/uuid").decode().strip()
            self.pipes.say(self.pipes.stream.begin(read_file("prompt.md"), mark))

    def carry(self) -> bool:
        """Carry a turn to its end; return whether the agent has come to a result, and stands still now."""
        while self.agent and self.status is None and time.monotonic() < self.give_up_at:
            if self.pipes.stream.over and not self.cause and self.pipes.written():
                return self.come_to_rest()
            self.wait()
            self.reap()
            self.hold_limits()
        return False

    def come_to_rest(self) -> bool:
        """Stop the agent, kill what its tools left and take what it printed; return whether it stands still.

        What is in its own group, such as servers of tools that talk with it, is stopped and goes on with it.
        """
        self.signal_group(signal.SIGSTOP)
        bound = time.monotonic() + SWEEP_SECONDS
        while not (stands_still(group_of(self.agent)) and self.sweep_tools()):
            self.reap()
            if self.status is None and time.monotonic() > bound:
                self.cause, self.why = "ended", "after_result"
            if self.status is not None or self.cause:
                return False
            time.sleep(LOOK_SECONDS)
        self.pipes.drain()
        self.reap()
        return self.status is None

    def sweep_tools(self) -> bool:
        """Kill what is below the agent and not of its own group; return whether nothing of that is left.

        A git in that group is killed too: it would keep the repository's locks while it stands still.
        """
        own = {pid for pid in group_of(self.agent) if not read_file(f"/proc/{pid}/comm").startswith(b"git")}
        left = [pid for pid in descendants(os.getpid()) if pid not in own and pid != self.agent]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        self.swept += 0 if self.order.confined else len(left)
        return not left

    def leave_turn(self) -> None:
        """Let go of the turn's run; its record stands."""
        self.pipes.look_away()
        for descriptor in (self.listener.fileno(), *self.clients):
            self.poller.unregister(descriptor)
        self.listener.close()
        for client, _ in self.clients.values():
            client.close()
        self.clients = {}
        for descriptor in (*self.outputs, self.order.run_lock):
            os.close(descriptor)
        self.outputs.clear()
        self.attached = time.monotonic()
        self.resting, self.next = True, None

    def await_turn(self) -> None:
        """Wait for the next turn: no longer than for somebody who follows one, and not after a failure."""
        while self.next is None and self.status is None and not (self.leaving or self.pipes.stream.failed):
            if time.monotonic() >= self.next_look():
                return
            self.wait()
            self.reap()

    def next_look(self) -> float:
        """Return the moment at which a limit has to be looked at next."""
        return self.attached + self.order.orphan_seconds if self.resting else super().next_look()

    def end(self, cause: str, why: str = "") -> None:
        """Ask the agent to end; between turns it may not go on for that, and is killed as it stands."""
        if self.resting:
            self.leaving = True
        else:
            super().end(cause, why)

    def take(self, order: Order) -> None:
        """Begin the next turn; where its files cannot be made, the process ends with it."""
        self.order, self.resting = order, False
        self.cause = self.why = ""
        self.printed = self.swept = 0
        self.kill_at = self.give_up_at = NEVER
        self.begin = self.heard = self.attached = time.monotonic()
        self.listener = socket.socket(socket.AF_UNIX)
        try:
            if order.confined:  # its report is found beside each turn: one file, to which the sandbox adds
                os.link(os.fsencode(REPORT), b"%s/%s" % (order.folder, os.fsencode(REPORT)))
            os.chdir(order.folder)
            self.listen()
            self.open_outputs()
        except OSError as error:
            self.cause, self.why = "not_started", f"{errno.errorcode.get(error.errno or 0, '')}: {error.strerror}"
            self.signal_group(signal.SIGKILL)
            return
        self.sign()
        self.pipes.watch()
        self.signal_group(signal.SIGCONT)
        self.ask()

    def hear(self, descriptor: int) -> None:
        """Hear the agent, those who knock, and those who are attached."""
        if descriptor in self.pipes.printed:
            if self.pipes.pump(descriptor):
                self.heard = time.monotonic()
        elif descriptor == self.pipes.stdin:
            self.pipes.say()
        elif descriptor == self.door.fileno():
            self.answer()
        elif descriptor in self.clients:
            super().hear(descriptor)

    def answer(self) -> None:
        """Hear what somebody wants who knocks: a turn, or the end."""
        try:
            descriptor, _ = self.door._accept()  # type: ignore[attr-defined] # noqa: SLF001 -- what `accept` calls
        except OSError:
            return
        client = socket.socket(fileno=descriptor)
        client.settimeout(VISIT_SECONDS)
        order, locks = None, EMPTY
        try:
            data, locks = beginning(client)
            if data.startswith(b"end "):
                self.end("ended", data[4 : 4 + WHY_LIMIT].decode("utf-8", "replace").strip())
            elif self.resting and self.next is None and len(locks) > 1:
                order = remainder(client, data, locks)
        except OSError:
            order = None
        if order is None:
            client.close()
            for lock in locks:
                os.close(lock)
        else:
            client.setblocking(False)  # noqa: FBT003 -- the socket's own signature
            self.next, self.clients = order, {client.fileno(): (client, b"")}

    def exit_code(self) -> int | None:
        """Return how the agent ended; after a result it has done so as a process that ends by itself."""
        return 0 if self.pipes.stream.over and self.status is None and not self.cause else super().exit_code()
