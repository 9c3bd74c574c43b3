r"""An order to a supervisor, as it comes over a socket.

An order is `<length>\n` and fields with a NUL between them, as a program's arguments have them: run folder,
working directory, wall, idle, grace and orphan limits in seconds, `1` for an agent in a sandbox, number of
arguments, arguments (then they begin with bubblewrap's), environment.
With it come two descriptors: the lock of the workspace's one writer, and the lock that says that this run lives. A
third one says that the agent's process is kept for further turns: see `warm_supervisor`.

Part of the supervisor's program: it imports only small modules of the standard library.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
else:
    import _socket as socket  # without the enums, which take long to import

DESCRIPTOR_BYTES = 4
LOCKS = 3


class Order:
    """What to run, where, and within which limits."""

    def __init__(self, payload: bytes, locks: list[int]) -> None:
        """Read the fields; `locks` are the writer's, the run's and, at times, the warm process's."""
        fields = payload.split(b"\0")
        self.folder, self.directory = fields[:2]
        self.wall_seconds, self.idle_seconds, self.grace_seconds, self.orphan_seconds = map(float, fields[2:6])
        self.confined = fields[6] == b"1"
        rest = 8 + int(fields[7])
        self.argv = fields[8:rest]
        self.env = dict(pair.split(b"=", 1) for pair in fields[rest:])
        self.writer_lock, self.run_lock = locks[:2]
        self.warm_lock = locks[2] if len(locks) == LOCKS else None


def receive(worker: socket.socket) -> Order | None:
    """Wait for the order; `None` when the worker is gone."""
    data, locks = beginning(worker)
    return remainder(worker, data, locks)


def beginning(sender: socket.socket) -> tuple[bytes, list[int]]:
    """Wait for a message and return its beginning, with the descriptors that came along."""
    data, messages, _, _ = sender.recvmsg(65536, socket.CMSG_SPACE(LOCKS * DESCRIPTOR_BYTES))
    return data, [lock for _, _, descriptors in messages for lock in memoryview(descriptors).cast("i")]


def remainder(sender: socket.socket, data: bytes, locks: list[int]) -> Order | None:
    """Wait for the rest of an order that began so; `None` when the sender is gone."""
    while not complete(data):
        more = sender.recv(1 << 20)
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
