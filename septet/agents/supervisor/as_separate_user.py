"""Become a program as an ordinary user of one run alone, where no sandbox starts and the supervisor is root.

Its arguments: what that user is given, as JSON, then the program, which is looked for as that user, and its own
arguments. What it is given changes hands by name and part by part, no link is followed, and a file with further
names stays whose it is: one that worked there before may have left them. It keeps no way back to root.
"""

import ctypes
import errno
import json
import os
import resource
import stat
import sys

sys.path.append(__file__.rsplit("/", 4)[0])  # -I leaves the project off the path

from septet.agents.supervisor.own_user import FIRST_USER, LIBC, NO_NEW_PRIVILEGES
from septet.agents.supervisor.process_tree import die_with_parent

SET_FILTER, FILTER_MODE, STEP_BYTES = 22, 2, 8
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
FOR_OTHERS = 0o007
PASSED, READ = 0o710, 0o750
"""By a group of guests alone; others have no right."""


class Filter(ctypes.Structure):
    """A filter of system calls, as the kernel takes it."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


class SeparateUser:
    """What one run's user is given."""

    def __init__(  # noqa: PLR0913 -- the fields of a message, all by name
        self,
        *,
        user: int,
        passages: list[tuple[str, int]],
        readable: list[tuple[str, int]],
        empty: list[str],
        own: list[str],
        system_calls: str = "",
        processes: int = 0,
    ) -> None:
        """Describe it.

        Args:
            user: Its number, which no other run has.
            passages: Folders that members of a group may pass, and see no name in.
            readable: Folders that members of a group may read, with all that is in them.
            empty: Folders that are made anew, and are its own.
            own: Folders that are its own, with all that is in them.
            system_calls: The filter of system calls, in hexadecimal; empty for none.
            processes: How many it may have; 0 for no limit.
        """
        self.user = user
        self.passages = passages
        self.readable = readable
        self.empty = empty
        self.own = own
        self.system_calls = bytes.fromhex(system_calls)
        self.processes = processes

    def prepare(self) -> None:
        """Give it what is to be its own, and let it pass where it has to.

        Raises:
            OSError: The disk or the kernel refuses.
        """
        for path, group in self.passages:
            os.chown(path, -1, group)
            os.chmod(path, PASSED)
            close_what_is_in(path)
        for path, group in self.readable:
            let_read(path, group)
        for path in self.empty:
            clear(path)
        for path in (*self.empty, *self.own):
            give(path, self.user)

    def become(self) -> None:
        """Be this user, for ever.

        Raises:
            OSError: The kernel refuses.
        """
        for descriptor in range(3):  # `/dev/stdout` is opened anew by many a script
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.fchown(descriptor, self.user, -1)
        if self.processes:
            resource.setrlimit(resource.RLIMIT_NPROC, (self.processes, self.processes))
        os.setgroups(sorted({group for _, group in (*self.passages, *self.readable)}))
        os.setresgid(self.user, self.user, self.user)
        os.setresuid(self.user, self.user, self.user)
        LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        if self.system_calls:
            steps = Filter(len(self.system_calls) // STEP_BYTES, self.system_calls)
            if LIBC.prctl(SET_FILTER, FILTER_MODE, ctypes.byref(steps), 0, 0) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), "the filter of system calls")


def give(path: str, user: int) -> None:
    """Let a folder and all that is in it be a user's; nobody works there meanwhile.

    Raises:
        OSError: The disk or the kernel refuses.
    """
    os.chown(path, user, user, follow_symlinks=False)
    os.chmod(path, 0o700)
    for _, folders, files, descriptor in os.fwalk(path, follow_symlinks=False):
        for name in (*folders, *files):
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            is_folder = stat.S_ISDIR(status.st_mode)
            if status.st_uid != user and (is_folder or status.st_nlink == 1 or status.st_uid >= FIRST_USER):
                os.chown(name, user, user, dir_fd=descriptor, follow_symlinks=False)


def let_read(path: str, group: int) -> None:
    """Let a group read a folder with all that is in it, and nobody else pass it.

    Raises:
        OSError: The disk or the kernel refuses.
    """
    for _, _, files, descriptor in os.fwalk(path, follow_symlinks=False):
        admit(descriptor, group, 0o050)
        for name in files:
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and (status.st_gid != group or not status.st_mode & 0o040):
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=descriptor)
                admit(file, group, 0o040)
                os.close(file)
    os.chmod(path, READ)


def admit(descriptor: int, group: int, bits: int) -> None:
    """Let a group do with a file or folder what these bits say.

    Raises:
        OSError: The disk or the kernel refuses.
    """
    status = os.fstat(descriptor)
    if status.st_gid != group:
        os.fchown(descriptor, -1, group)
    if status.st_mode & bits != bits:
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & ~FOR_OTHERS | bits)


def close_what_is_in(path: str) -> None:
    """Close each name in a folder to all who have no other right to it: whoever passes it may know them.

    Raises:
        OSError: The disk or the kernel refuses.
    """
    for entry in os.scandir(path):
        mode = entry.stat(follow_symlinks=False).st_mode
        if mode & FOR_OTHERS and not entry.is_symlink():
            os.chmod(entry.path, stat.S_IMODE(mode) & ~FOR_OTHERS, follow_symlinks=True)


def clear(path: str) -> None:
    """Make a folder anew, whatever was left in it.

    Raises:
        OSError: The disk refuses.
    """
    if os.path.lexists(path):
        if not os.path.islink(path) and os.path.isdir(path):
            for _, folders, files, descriptor in os.fwalk(path, topdown=False, follow_symlinks=False):
                for name in (*folders, *files):
                    is_folder = stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
                    (os.rmdir if is_folder else os.unlink)(name, dir_fd=descriptor)
            os.rmdir(path)
        else:
            os.unlink(path)
    os.makedirs(path, mode=0o700)


def execute(argv: list[str]) -> None:
    """Become a program, looked for as a shell does; nothing is imported any more, for root's files are closed.

    Raises:
        OSError: There is none that can be executed.
    """
    folders = [""] if "/" in argv[0] else [f"{each}/" for each in os.environ.get("PATH", os.defpath).split(":")]
    refusal: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    for folder in folders:
        try:
            os.execve(folder + argv[0], argv, os.environ)  # noqa: S606 -- no shell is the point
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ENOTDIR}:
                refusal = error
    raise refusal


def main() -> None:
    """Do what the arguments say, and say what the machine refuses."""
    parent = os.getppid()
    try:
        separate = SeparateUser(**json.loads(os.fsencode(sys.argv[1])))
        separate.prepare()
        separate.become()
        die_with_parent()  # the kernel forgets it when the user changes
        if os.getppid() == parent:
            execute(sys.argv[2:])
    except OSError as error:
        print(f"{error.filename or sys.argv[2]}: {error.strerror}", file=sys.stderr)  # noqa: T201 -- what is read of it
    os._exit(126)


main()
