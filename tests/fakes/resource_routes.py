"""Ways out by the kernel's user 0 and by shared resources of the machine; see `escape_routes.py`."""

from dataclasses import dataclass, replace
from pathlib import Path

from fakes.attack_tables import counted
from fakes.escape_routes import PLAIN_PROCESSES, Change, Route, bound, removed
from fakes.guests import PROMPT, Arguments, Machine

from septet.agents.guest.description import Description
from septet.agents.guest.network import OwnNetwork
from septet.agents.guest.sandbox_parts import NoCapabilities, OwnUser, Protection, RefusedSystemCalls


def _root_of_the_machine(description: Description, root: Path) -> Description:
    kinds = ("user", OwnUser, NoCapabilities, RefusedSystemCalls)
    parts: tuple[Protection, ...] = removed(*kinds)(description, root).protections
    return replace(description, protections=(*parts, Arguments(("--cap-add", "ALL"))))


def _mode(name: str, attack: str, program: str) -> Route:
    ends = "\n    print(CANARY if os.stat('left').st_mode & 0o4000 else 'no such bit')"
    text = f"try:\n    {program}{ends}\nexcept OSError as error:\n    print('refused:', error.strerror)\nremove('left')\n"
    return Route(name, attack, _REMOVE + text, "refused system calls", removed(RefusedSystemCalls))


_REMOVE = """
os.umask(0)
def remove(name):
    try:
        os.unlink(name)
    except OSError:
        pass
remove('left')
"""
_OPENAT2 = "libc.syscall(437, -100, b'left', (ctypes.c_uint64 * 3)(0o102, 0o4755, 0), 24)"
_CALL = "open('left', 'w').close(); libc.syscall(452, -100, b'left', 0o4755, 0)"
_CAPABILITY = """
with open('left', 'w'):
    pass
value = bytes.fromhex('0100000200200000000000000000000000000000')
done(libc.setxattr(b'left', b'security.capability', value, len(value), 0))
os.unlink('left')
"""
_NODE = """
try:
    os.mknod('left', 0o20666, os.makedev(1, 5))
    print(CANARY)
    os.unlink('left')
except OSError as error:
    print('refused:', error.strerror)
"""

_BUFFER = """
pair = socket.socketpair()
before = pair[0].getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * before)
print(CANARY if pair[0].getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > before else 'as it was')
"""
_SPLICE = """
libc.vmsplice.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]
text = ctypes.create_string_buffer(4096)
done(libc.vmsplice(os.pipe()[1], (ctypes.c_uint64 * 2)(ctypes.addressof(text), 4096), 1, 0))
"""

_WATCHES = "print(CANARY if all([libc.inotify_init1(0) >= 0 for _ in range(40)]) else 'refused')"
_GROUPS = "print(CANARY if all([libc.fanotify_init(0x200, 0) >= 0 for _ in range(20)]) else 'refused')"
_DETACHED = "print(CANARY if all([libc.shmget(0, 150 << 20, 0o1600) >= 0 for _ in range(2)]) else 'refused')"
_QUEUES = "print(CANARY if all([libc.msgget(0, 0o1600) >= 0 for _ in range(100)]) else 'refused')"

RESOURCE_ROUTES = (
    _mode("setuid-chmod", "leave a program that runs as root, by `chmod`", "open('left', 'w').close(); os.chmod('left', 0o4755)"),
    _mode("setuid-fchmod", "… by the descriptor of the file", "os.fchmod(os.open('left', os.O_CREAT | os.O_WRONLY), 0o4755)"),
    _mode("setuid-open", "… by the mode of a new file", "os.open('left', os.O_CREAT | os.O_WRONLY, 0o4755)"),
    _mode("setuid-mknod", "… by `mknod`", "os.mknod('left', 0o100000 | 0o4755)"),
    _mode("setuid-openat2", "… by a call whose arguments no filter can read", f"{_OPENAT2}"),
    _mode("setuid-fchmodat2", "… by a call that is new", _CALL),
    Route("larger-buffers", "let sockets hold more of the kernel's memory than they are counted for", _BUFFER, "refused system calls", removed(RefusedSystemCalls)),
    Route("memory-in-pipes", "leave memory in a pipe, which is then nobody's", _SPLICE, "refused system calls", removed(RefusedSystemCalls)),
    Route("notifications", "use up what a user may have of `inotify`", _WATCHES, "bounds in namespaces of its own", removed(OwnNetwork)),
    Route("file-system-notifications", "… of `fanotify`", _GROUPS, "bounds in namespaces of its own", removed(OwnNetwork)),
    Route("detached-memory", "leave memory of System V that nobody is attached to", _DETACHED, "bounds in namespaces of its own", removed(OwnNetwork)),
    Route("message-queues", "leave the kernel messages that nobody receives", _QUEUES, "bounds in namespaces of its own", removed(OwnNetwork)),
    Route("file-capability", "leave a program that has capabilities", _CAPABILITY, "no capabilities, and no root user", _root_of_the_machine, as_root=True),
    Route("device-node", "make a device of the machine", _NODE, "no capabilities, and no root user", _root_of_the_machine, as_root=True),
)  # fmt: skip


@dataclass(frozen=True)
class RootRoute:
    """A right of the kernel's user 0 that needs no capability, without another protection."""

    name: str
    attack: str
    program: str
    seen: Change
    """Removes the other protections, so that only the user protects the canary."""


def _as_it_is(description: Description, root: Path) -> Description:
    return description


def _read(path: str) -> str:
    return f"print(CANARY if os.access({path!r}, os.R_OK) else 'refused')"


def _write(path: str) -> str:
    return f"print(CANARY if os.access({path!r}, os.W_OK) else 'refused')"


ROOT_ROUTES = (
    RootRoute("kernel-memory-tables", "read the kernel's own tables", _read("/proc/slabinfo"), _as_it_is),
    RootRoute("kernel-timers", "read the kernel's timers", _read("/proc/timer_list"), _as_it_is),
    RootRoute("kernel-switches", "turn the kernel's switches", _write("/proc/sys/vm/overcommit_memory"), PLAIN_PROCESSES),
    RootRoute("core-pattern-by-uid", "name the program that the kernel starts", _write("/proc/sys/kernel/core_pattern"), PLAIN_PROCESSES),
    RootRoute("machine-passwords", "read the passwords where `/etc` is seen", _read("/etc/shadow"), bound("/etc")),
    RootRoute("machine-programs", "change programs where `/usr` is seen", _write("/usr/bin"), bound("/usr")),
    RootRoute("roots-processes", "signal root's processes where they are seen",
              "try:\n    os.kill(neighbour, 0)\n    print(CANARY)\nexcept OSError as error:\n    print(error.strerror)", removed("pid")),
    RootRoute("roots-memory", "read root's shared memory where it is seen",
              "libc.shmat.restype = ctypes.c_ssize_t\nn = libc.shmget(memory_key, 4096, 0)\n"
              "print(CANARY if n >= 0 and libc.shmat(n, None, 0) != -1 else 'refused')", removed("ipc")),
)  # fmt: skip


@dataclass(frozen=True)
class RecordRoute:
    """A way to change the records of the guest's own run, to which stdin, stdout and stderr lead."""

    name: str
    attack: str
    change: str

    @property
    def program(self) -> str:
        """Return the program, which first prints evidence on stdout and stderr."""
        evidence = f"import os, sys\nfor file in (sys.stdout, sys.stderr):\n    print({EVIDENCE!r}, file=file, flush=True)\n"
        return f"{evidence}try:\n    {self.change}\nexcept OSError:\n    pass\n"


EVIDENCE = "evidence"


def are_whole(records: Path) -> bool:
    """Return whether a run's records hold the prompt and the evidence, without a hole."""
    prompt, *printed = (_beginning(records / name) for name in RECORDS)
    sizes = [(records / name).stat().st_size for name in RECORDS]
    return prompt == PROMPT and printed == [f"{EVIDENCE}\n".encode()] * 2 and max(sizes) < _MIB


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(100)


RECORDS = ("prompt.md", "stdout.jsonl", "stderr.log")
_AGAIN = "os.open('/proc/self/fd/{}', os.O_RDWR)"
RECORD_ROUTES = (
    RecordRoute("cut-output", "cut off what it has printed", "os.ftruncate(1, 0)"),
    RecordRoute("write-over-output", "open again what it has printed, and write over it", f"os.pwrite({_AGAIN.format(1)}, b'x' * 8, 0)"),
    RecordRoute("write-over-errors", "… on stderr", f"os.pwrite({_AGAIN.format(2)}, b'x' * 8, 0)"),
    RecordRoute("hole-in-output", "leave a hole of 19 GiB in what it has printed", "os.ftruncate(1, 19 << 30)"),
    RecordRoute("write-over-prompt", "write over what it was asked", f"os.pwrite({_AGAIN.format(0)}, b'x' * 8, 0)"),
    RecordRoute("cut-prompt", "cut off what it was asked", f"os.ftruncate({_AGAIN.format(0)}, 0)"),
)  # fmt: skip


@dataclass(frozen=True)
class Bomb:
    """A program that uses up one resource, and prints the canary if it is not stopped."""

    name: str
    program: str
    resources: dict[str, int]
    cause: str
    words: str


_MIB = 1024 * 1024
_WAIT = "\nimport time\nfor _ in range(seconds * 10):\n    time.sleep(0.1)\nprint(CANARY)\n"

_MEMORY_FILE = """
def memory_file():
    file = os.memfd_create('x')
    for _ in range(100):
        os.write(file, b'x' * 1048576)
    return file

def map_only(file):
    libc.mmap.restype = ctypes.c_void_p
    return libc.mmap(None, ctypes.c_size_t(100 << 20), 3, 1, file, 0)

"""
_FILL = """
def fill(pair):
    for one in pair:
        one.setblocking(False)
        try:
            while True:
                one.send(b'x' * 32000)
        except BlockingIOError:
            pass
    return pair
"""

BOMBS = (
    Bomb("processes", "for _ in range(60):\n    if os.fork() == 0:\n        import time; time.sleep(30); os._exit(0)",
         {"processes": 50}, "process_limit", "processes limit of 50 reached"),
    Bomb("threads", "import threading, time\nfor _ in range(60):\n    threading.Thread(target=time.sleep, args=(seconds,), daemon=True).start()",
         {"processes": 50}, "process_limit", "processes limit of 50 reached"),
    Bomb("memory", "kept = bytearray(os.urandom(1024)) * (150 * 1024)", {"memory_bytes": 100 * _MIB}, "memory_limit",
         "memory limit of 100 MiB reached"),
    Bomb("shared-memory", "import mmap\nkept = mmap.mmap(-1, 150 << 20)\nfor page in range(0, len(kept), 4096):\n    kept[page] = 1",
         {"memory_bytes": 100 * _MIB}, "memory_limit", "memory limit of 100 MiB reached"),
    Bomb("shared-memory-of-System-V", "libc.shmat.restype = ctypes.c_void_p\n"
         "ctypes.memset(libc.shmat(libc.shmget(0, 150 << 20, 0o1600), None, 0), 1, 150 << 20)",
         {"memory_bytes": 100 * _MIB}, "memory_limit", "memory limit of 100 MiB reached"),
    Bomb("memory-in-files-without-a-name", "kept = [os.memfd_create('x') for _ in range(3)]\nfor file in kept:\n    for _ in range(50):\n        os.write(file, b'x' * 1048576)",
         {"memory_bytes": 100 * _MIB}, "memory_limit", "memory limit of 100 MiB reached"),
    Bomb("memory-in-deleted-files", "kept = open('/tmp/kept', 'wb', buffering=0)\nos.unlink('/tmp/kept')\nfor _ in range(150):\n    kept.write(b'x' * 1048576)",
         {"memory_bytes": 100 * _MIB}, "memory_limit", "memory limit of 100 MiB reached"),
    Bomb("memory-in-files-that-never-had-a-name", "kept = os.open('/dev/shm', os.O_TMPFILE | os.O_RDWR)\nfor _ in range(150):\n    os.write(kept, b'x' * 1048576)",
         {"memory_bytes": 100 * _MIB}, "memory_limit", "memory limit of 100 MiB reached"),
    Bomb("memory-in-messages", f"{_MEMORY_FILE}kept = socket.socketpair()\nfor _ in range(4):\n    file = memory_file()\n    socket.send_fds(kept[0], [b'+'], [file])\n    os.close(file)",
         {"memory_bytes": 100 * _MIB}, "memory_limit", "memory limit of 100 MiB reached"),
    Bomb("memory-that-is-only-mapped", f"{_MEMORY_FILE}for _ in range(4):\n    file = memory_file()\n    map_only(file)\n    os.close(file)",
         {"memory_bytes": 100 * _MIB}, "memory_limit", "memory limit of 100 MiB reached"),
    Bomb("sockets-of-many-processes", f"{_FILL}for _ in range(4):\n    if os.fork() == 0:\n        kept = [fill(socket.socketpair()) for _ in range(40)]\n        import time; time.sleep(seconds); os._exit(0)",
         {"memory_bytes": 100 * _MIB}, "socket_limit", "sockets and pipes limit of 256 reached"),
    Bomb("sockets-in-messages", f"{_FILL}kept = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\nfor _ in range(8):\n    kept += socket.socketpair()\n"
         "for n in range(160):\n    pair = fill(socket.socketpair())\n    socket.send_fds(kept[2 * (n // 20)], [b'+'], [each.fileno() for each in pair])",
         {"memory_bytes": 100 * _MIB}, "socket_limit", "sockets and pipes limit of 256 reached"),
    Bomb("pipes", "kept = [os.pipe() for _ in range(300)]", {"memory_bytes": 100 * _MIB}, "socket_limit",
         "sockets and pipes limit of 256 reached"),
    Bomb("disk", "for n in range(15):\n    open(f'big-{n}', 'wb').write(b'x' * 2097152)", {"disk_bytes": 20 * _MIB},
         "disk_limit", "disk limit of 20 MiB reached"),
    Bomb("nameless-files", "kept = []\nfor n in range(15):\n    kept.append(open(f'gone-{n}', 'wb', buffering=0)); kept[-1].write(b'x' * 2097152); os.unlink(f'gone-{n}')",
         {"disk_bytes": 20 * _MIB}, "disk_limit", "disk limit of 20 MiB reached"),
    Bomb("tree", "os.makedirs('many', exist_ok=True)\nfor n in range(3000):\n    open(f'many/{n}', 'w').close()", {"tree_entries": 2000},
         "tree_limit", "tree limit of 2000 entries reached"),
    Bomb("pipes-in-the-tree", "os.makedirs('pipes', exist_ok=True)\nfor n in range(3000):\n    os.mkfifo(f'pipes/{n}')", {"tree_entries": 2000},
         "tree_limit", "tree limit of 2000 entries reached"),
    Bomb("holes-in-the-tree", "for n in range(4):\n    open(f'hole-{n}', 'wb').truncate(8 << 20)", {"tree_bytes": 20 * _MIB},
         "tree_size_limit", "tree limit of 20 MiB reached"),
    Bomb("output", "for _ in range(30):\n    sys.stdout.write('x' * 1048576)\nsys.stdout.flush()", {"output_bytes": 10 * _MIB},
         "output_limit", "output limit of 10 MiB reached"),
)  # fmt: skip


def explode(machine: Machine, bomb: Bomb, *, limited: bool) -> str:
    """Run a bomb as a guest, which waits to be stopped if it is limited; then clear its folder."""
    seconds = 15 if limited else 0
    cleared = "import shutil\nfor name in os.listdir('.'):\n    if name != 'own':\n        shutil.rmtree(name, True)\n        os.path.isfile(name) and os.unlink(name)\n"
    machine.run(cleared)
    try:
        program = f"seconds = {seconds}\n{bomb.program}{_WAIT}"
        return machine.run(program, resources=bomb.resources if limited else None)
    finally:
        machine.run(cleared)


def resource_table() -> str:
    return counted(
        {
            "leave something with more rights, or use up what a user may have": [
                (each.attack, each.protection) for each in RESOURCE_ROUTES
            ],
            "change its own prompt or output": [
                (each.attack, "pipes, and a sealed prompt") for each in RECORD_ROUTES
            ],
            "use what root may do, where the worker is root": [
                (each.attack, "a separate user") for each in ROOT_ROUTES
            ],
            "use up the machine": [(each.name, f"`{each.cause}`") for each in BOMBS],
        }
    )
