r"""Orders to supervisors: messages from workers; worker and supervisor may be of different releases.

An order is `<length>\n` and a JSON object of that length; a path or argument that is no UTF-8 is written as its
raw bytes. A receiver ignores unknown fields. `version` rises only if an older receiver would misunderstand the
order. A runner's lock file names the version that the runner understands.

An order comes with two descriptors: the writer's lock of the workspace, and the lock of the run. The first order
of a warm process also brings the lock of the process.
"""

import array  # noqa: F401 -- `recv_fds` would import it after the fork, see the package
import json
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

ORDER_VERSION = 1
RUN, WARM = "run", "warm"
MOST_LOCKS = 3
ORDER_NAMES = ("folder", "directory", "argv", "env", "kind", "confined")
CONFINEMENT_NAMES = ("program", "arguments", "texts", "system_calls", "network", "gives_up_root")
LIMIT_NAMES = ("wall_seconds", "idle_seconds", "grace_seconds", "orphan_seconds")
RESOURCE_NAMES = ("processes", "memory_bytes", "disk_bytes", "tree_entries", "tree_bytes", "output_bytes")
FIRST_CHUNK_BYTES, CHUNK_BYTES = 1 << 16, 1 << 20


class Limits:
    """An agent's time limits, in seconds, and resource limits; a resource limit of 0 means no limit."""

    processes = 0
    """The number of processes, with their threads, that the run may have."""
    memory_bytes: int | None = None
    """The bytes of memory that the run may use; `None` for three quarters of the memory of the machine or
    container."""
    disk_bytes = 0
    """The bytes on disk that files written by the run may take; deleted files do not count."""
    tree_entries = 0
    """The number of files and folders that the run may write."""
    tree_bytes = 0
    """The sum of the sizes, in bytes, of the files that the run may write; holes in files count."""
    output_bytes = 0
    """The bytes that the run may write to stdout and stderr together."""

    def __init__(
        self, wall_seconds: float, idle_seconds: float, grace_seconds: float = 2.0, orphan_seconds: float = 1800.0
    ) -> None:
        """Take the longest seconds of a run, of silence, from SIGTERM to the end, and without an attempt."""
        self.wall_seconds = wall_seconds
        self.idle_seconds = idle_seconds
        self.grace_seconds = grace_seconds
        self.orphan_seconds = orphan_seconds

    def with_resources(self, resources: Mapping[str, int]) -> "Limits":
        """Return the same time limits with these resource limits; ignore unknown names."""
        limits = Limits(**{name: vars(self)[name] for name in LIMIT_NAMES})
        vars(limits).update({name: int(resources[name]) for name in RESOURCE_NAMES if name in resources})
        return limits


class Confinement:
    """The sandbox around a program: bubblewrap's arguments, and what bubblewrap reads from descriptors."""

    gives_up_root = False
    """Whether a supervisor that is root starts the guest as an ordinary user."""

    def __init__(
        self,
        program: str,
        arguments: Sequence[str],
        texts: Mapping[str, str],
        system_calls: str = "",
        network: Mapping[str, object] | None = None,
    ) -> None:
        """Take bubblewrap's absolute path, its arguments, and the contents of files by their paths in the sandbox.

        `system_calls` is the filter of system calls in hexadecimal. `network` has the rules of the proxy, see
        `network_rules.py`; `None` means no private network.
        """
        self.program = program
        self.arguments = tuple(arguments)
        self.texts = dict(texts)
        self.system_calls = system_calls
        self.network = dict(network) if network is not None else None

    def inline(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return bubblewrap's command line for `argv`, without what bubblewrap reads from descriptors."""
        return (self.program, *self.arguments, "--", *argv)


class Order:
    """A request to a supervisor to run one turn: program, folders, limits and sandbox."""

    kind = RUN
    """`run` for a process that ends with this turn, `warm` for a process that serves many turns."""
    confined = False
    """Whether the agent is in a sandbox, which `confinement` describes, or which a bubblewrap in `argv` makes."""
    confinement: Confinement | None = None
    """The sandbox around the program; `None` without a sandbox, or if `argv` starts the sandbox."""

    def __init__(
        self, *, folder: str, directory: str, argv: Sequence[str], env: Mapping[str, str], limits: Limits
    ) -> None:
        """Take the run's folder, the working directory, the program with arguments, environment and limits."""
        self.folder = folder
        self.directory = directory
        self.argv = tuple(argv)
        self.env = dict(env)
        self.limits = limits

    def inside(self, confinement: Confinement | None) -> "Order":
        """Set the sandbox around this order's program, or no sandbox for `None`; return this order."""
        self.confinement, self.confined = confinement, confinement is not None
        return self

    def to_json(self) -> bytes:
        """Return the order as a JSON object, which `from_json` reads."""
        around = self.confinement
        confinement = {name: getattr(around, name) for name in CONFINEMENT_NAMES} if around is not None else None
        own = {name: getattr(self, name) for name in ORDER_NAMES}
        fields = {**own, "version": ORDER_VERSION, "limits": vars(self.limits), "confinement": confinement}
        return os.fsencode(json.dumps(fields, ensure_ascii=False))

    @classmethod
    def from_json(cls, payload: bytes) -> "Order":
        """Return the order from a JSON object that `to_json` wrote.

        Raises:
            ValueError: The text is no order, or an order of another version.
            KeyError: A field is missing.
        """
        fields = json.loads(payload.decode("utf-8", "surrogateescape"))
        if fields["version"] != ORDER_VERSION:
            raise ValueError
        limits = Limits(**{name: fields["limits"][name] for name in LIMIT_NAMES}).with_resources(fields["limits"])
        order = cls(**{name: fields[name] for name in ("folder", "directory", "argv", "env")}, limits=limits)
        if around := fields["confinement"]:
            confinement = Confinement(*(around[name] for name in CONFINEMENT_NAMES[:-1]))
            confinement.gives_up_root = around["gives_up_root"]
            order.inside(confinement)
        order.kind, order.confined = fields["kind"], fields["confined"]
        return order


def send_order(connection: socket.socket, order: Order, locks: Sequence[int]) -> None:
    """Send an order and its locks to a supervisor; ignore a supervisor that has ended."""
    payload = order.to_json()
    message = b"%d\n%s" % (len(payload), payload)
    with suppress(ConnectionError):
        sent = socket.send_fds(connection, [message], locks)
        connection.sendall(message[sent:])


def receive_order(sender: socket.socket) -> tuple[Order, list[int]] | None:
    """Wait for an order to this supervisor; return it with its locks; `None` if the sender ends or sends none."""
    data, locks = receive_beginning(sender)
    order = receive_rest(sender, data)
    return (order, locks) if order is not None else None


def receive_beginning(sender: socket.socket) -> tuple[bytes, list[int]]:
    """Wait for a message; return its first bytes, and the descriptors that came with them."""
    data, locks, _, _ = socket.recv_fds(sender, FIRST_CHUNK_BYTES, MOST_LOCKS)
    for lock in locks:
        os.set_inheritable(lock, False)
    return data, locks


def receive_rest(sender: socket.socket, data: bytes) -> Order | None:
    """Wait for the rest of an order that begins with `data`; return the order, or `None` if no order comes."""
    try:
        while not is_complete(data):
            more = sender.recv(CHUNK_BYTES)
            if not more:
                return None
            data += more
        return Order.from_json(data.partition(b"\n")[2])
    except (ValueError, KeyError):
        return None


def is_complete(data: bytes) -> bool:
    """Return whether `data` contains a whole order to a supervisor."""
    length, newline, payload = data.partition(b"\n")
    return bool(newline) and len(payload) >= int(length)
