"""Make listening sockets in a guest's network from outside; the sockets need no process in the guest.

Bubblewrap reports its first process by `--info-fd`. A short-lived child of the caller enters the namespaces of
that process, listens on loopback there, and sends the sockets back. A socket stays in the network in which the
child made it.
"""

import ctypes
import fcntl
import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from septet.agents.processes.confined import FIRST_PROCESS
from septet.agents.processes.own_user import LIBC
from septet.agents.processes.process_tree import read_file

USERS_OF_NAMESPACE = 0xB701
"""NS_GET_USERNS: the request for the user namespace of a network."""
NEW_USERS, NEW_NETWORK, NEW_MESSAGES = 0x10000000, 0x40000000, 0x08000000
NOT_YET_UP, NOT_YET_UP_6 = 15, 78
"""IP_FREEBIND and IPV6_FREEBIND: the guest's loopback may not be up yet."""
MAP_SECONDS, LOOK_SECONDS = 0.2, 0.0002
BOUNDS_OF_USERS = {
    "user/max_inotify_instances": 16,
    "user/max_inotify_watches": 1 << 17,
    "user/max_fanotify_groups": 8,
    "user/max_fanotify_marks": 1 << 13,
}
"""The guest's limits for the kernel's watches: a part of the 128 instances that most machines permit a user."""
BOUNDS_OF_MESSAGES = {"kernel/shmall": 1 << 16, "kernel/msgmni": 64}
"""The guest's limits for System V memory, 256 MiB in pages, and for the number of message queues."""
LOOPBACK, LOOPBACK_6 = "127.0.0.1", "::1"
MOST_BYTES = 4096


def first_process(info: int) -> int:
    """Return the id of a guest's first process, from bubblewrap's report on `info`; 0 if bubblewrap ended."""
    told = b""
    while len(told) < MOST_BYTES:
        more = os.read(info, MOST_BYTES)
        told += more
        found = FIRST_PROCESS.search(told)
        if found is not None and (not more or found.end() < len(told)):  # the number is whole
            return int(found[1])
        if not more:
            return 0
    return 0


def send_sockets(receiver: socket.socket, info: int, places: Sequence[tuple[str, int]]) -> None:
    """Listen at these addresses and ports in the guest's network, and send the sockets to `receiver`.

    If the guest has ended, send nothing. This process must have one thread, and must exit afterwards.
    """
    process = first_process(info)
    if process == 0:
        return
    network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
    users = fcntl.ioctl(network, USERS_OF_NAMESPACE)
    if not os.path.sameopenfile(users, os.open("/proc/self/ns/user", os.O_RDONLY)):
        bound = time.monotonic() + MAP_SECONDS
        while not read_file(f"/proc/{process}/uid_map").strip() and time.monotonic() < bound:
            time.sleep(LOOK_SECONDS)
        enter(users, NEW_USERS)
        limit_use(process)
    enter(network, NEW_NETWORK)
    listeners = [listen(*place) for place in places]
    socket.send_fds(receiver, [b"+"], [each.fileno() for each in listeners])


def limit_use(process: int) -> None:
    """Limit a guest's share of the kernel's watches, of System V memory and of messages.

    The limits are settings of the guest's namespaces; the caller has entered the user namespace. `process` is any
    process of the guest. Some containers refuse the settings, which then stay unchanged.
    """
    turn_switches(BOUNDS_OF_USERS)
    with suppress(OSError):
        messages = os.open(f"/proc/{process}/ns/ipc", os.O_RDONLY)
        if not os.path.sameopenfile(messages, os.open("/proc/self/ns/ipc", os.O_RDONLY)):
            enter(messages, NEW_MESSAGES)
            os.setresuid(0, 0, 0)  # the settings belong to the namespace's root
            turn_switches(BOUNDS_OF_MESSAGES)


def turn_switches(values: Mapping[str, int]) -> None:
    """Write each value of `values` into the kernel's setting that the key names; ignore refusals."""
    for name, value in values.items():
        with suppress(OSError), open(f"/proc/sys/{name}", "wb", buffering=0) as switch:
            switch.write(b"%d" % value)


def enter(namespace: int, kind: int) -> None:
    """Move this process into a namespace of this kind; raise `OSError` if the kernel refuses."""
    if LIBC.setns(namespace, kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "setns")


def listen(address: str, port: int) -> socket.socket:
    """Return a socket that listens at a loopback address and port of this process's network."""
    if address == LOOPBACK_6:
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        listener.setsockopt(socket.IPPROTO_IPV6, NOT_YET_UP_6, 1)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    else:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_IP, NOT_YET_UP, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(128)
    return listener
