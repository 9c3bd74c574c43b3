r"""Orders to supervisors: messages on a socket between workers and runners, whose releases may differ.

An order is `<length>\n` and a JSON object of that length; a path or argument that is no UTF-8 stands there as its
bytes. A receiver ignores fields that it does not know. `version` rises only where an older receiver would
misunderstand the order, and the lock of a runner says which version the runner reads.

With an order come two descriptors: the lock of the workspace's one writer, and the lock that says that this run
lives. With the first order of a process that is kept for further turns comes that process's own lock.
"""

import array  # noqa: F401 -- `recv_fds` imports it: see the package for why it does not then
import json
import os
import socket
from collections.abc import Mapping, Sequence

ORDER_VERSION = 1
RUN, WARM = "run", "warm"
MOST_LOCKS = 3
ORDER_NAMES = ("folder", "directory", "argv", "env", "kind", "confined")
CONFINEMENT_NAMES = ("program", "arguments", "texts", "system_calls", "network", "gives_up_root")
LIMIT_NAMES = ("wall_seconds", "idle_seconds", "grace_seconds", "orphan_seconds")
RESOURCE_NAMES = ("processes", "memory_bytes", "disk_bytes", "tree_entries", "tree_bytes", "output_bytes")
FIRST_CHUNK_BYTES, CHUNK_BYTES = 1 << 16, 1 << 20


class Limits:
    """How long an agent may take, in seconds, and how much it may use; 0 is no limit of what it uses."""

    processes = 0
    """Processes with their threads."""
    memory_bytes: int | None = None
    """Where it runs three quarters of the machine's, or of the container's, when absent."""
    disk_bytes = 0
    """Written by this run, and still there."""
    tree_entries = 0
    """Files and folders that it has written."""
    tree_bytes = 0
    """How large the files are together that it has written, whatever they take on disk."""
    output_bytes = 0
    """Printed on stdout and stderr."""

    def __init__(
        self, wall_seconds: float, idle_seconds: float, grace_seconds: float = 2.0, orphan_seconds: float = 1800.0
    ) -> None:
        """Bound the run, its silence, its end after a request to end, and the time without an attached attempt."""
        self.wall_seconds = wall_seconds
        self.idle_seconds = idle_seconds
        self.grace_seconds = grace_seconds
        self.orphan_seconds = orphan_seconds

    def with_resources(self, resources: Mapping[str, int]) -> "Limits":
        """Return these limits with those of what may be used; names that are not known are left out."""
        limits = Limits(**{name: vars(self)[name] for name in LIMIT_NAMES})
        vars(limits).update({name: int(resources[name]) for name in RESOURCE_NAMES if name in resources})
        return limits


class Confinement:
    """The sandbox around a program: a bubblewrap, and what it reads from descriptors."""

    gives_up_root = False
    """A supervisor that is root starts the guest as a user of the run's own."""

    def __init__(
        self,
        program: str,
        arguments: Sequence[str],
        texts: Mapping[str, str],
        system_calls: str = "",
        network: Mapping[str, object] | None = None,
    ) -> None:
        """Describe it.

        Args:
            program: Bubblewrap by its absolute path.
            arguments: Its arguments, without the guest's own program.
            texts: Files that are made for the guest, by their paths inside.
            system_calls: The filter of system calls, in hexadecimal; empty for none.
            network: What its proxy lets through, where it has a network of its own: see `network_rules.py`.
        """
        self.program = program
        self.arguments = tuple(arguments)
        self.texts = dict(texts)
        self.system_calls = system_calls
        self.network = dict(network) if network is not None else None

    def inline(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the arguments of a bubblewrap that reads no texts and no filter from descriptors."""
        return (self.program, *self.arguments, "--", *argv)


class Order:
    """What to run, where, and within which limits."""

    kind = RUN
    """`run` for a process that ends with this turn, `warm` for one that serves many."""
    confined = False
    """The agent is inside a bubblewrap: that of `confinement`, or the program itself."""
    confinement: Confinement | None = None
    """What is around the program."""

    def __init__(
        self, *, folder: str, directory: str, argv: Sequence[str], env: Mapping[str, str], limits: Limits
    ) -> None:
        """Describe one turn of an agent.

        Args:
            folder: The run's folder, with `prompt.md` in it.
            directory: Where the agent works.
            argv: The program by its absolute path, and its arguments.
            env: The agent's whole environment.
            limits: What ends it.
        """
        self.folder = folder
        self.directory = directory
        self.argv = tuple(argv)
        self.env = dict(env)
        self.limits = limits

    def inside(self, confinement: Confinement | None) -> "Order":
        """Return the order with a sandbox around its program; as it is without one."""
        self.confinement, self.confined = confinement, confinement is not None
        return self

    def to_json(self) -> bytes:
        """Return the order as a receiver reads it."""
        around = self.confinement
        confinement = {name: getattr(around, name) for name in CONFINEMENT_NAMES} if around is not None else None
        own = {name: getattr(self, name) for name in ORDER_NAMES}
        fields = {**own, "version": ORDER_VERSION, "limits": vars(self.limits), "confinement": confinement}
        return os.fsencode(json.dumps(fields, ensure_ascii=False))

    @classmethod
    def from_json(cls, payload: bytes) -> "Order":
        """Read an order.

        Raises:
            ValueError: It is none, or of another version.
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
    """Send an order and its locks to a supervisor.

    One that has ended takes nothing, as the end of the socket will say.

    Raises:
        OSError: The machine refused.
    """
    payload = order.to_json()
    message = b"%d\n%s" % (len(payload), payload)
    try:
        sent = socket.send_fds(connection, [message], locks)
        connection.sendall(message[sent:])
    except ConnectionError:
        return


def receive_order(sender: socket.socket) -> tuple[Order, list[int]] | None:
    """Wait for an order and return it with its locks; `None` when the sender is gone, or sends none."""
    data, locks = receive_beginning(sender)
    order = receive_rest(sender, data)
    return (order, locks) if order is not None else None


def receive_beginning(sender: socket.socket) -> tuple[bytes, list[int]]:
    """Wait for a message and return its beginning, with the descriptors that came along."""
    data, locks, _, _ = socket.recv_fds(sender, FIRST_CHUNK_BYTES, MOST_LOCKS)
    for lock in locks:
        os.set_inheritable(lock, False)
    return data, locks


def receive_rest(sender: socket.socket, data: bytes) -> Order | None:
    """Wait for the rest of an order that began so; `None` when the sender is gone, or sends none."""
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
    """Return whether the whole order is there."""
    length, newline, payload = data.partition(b"\n")
    return bool(newline) and len(payload) >= int(length)
