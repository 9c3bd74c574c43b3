"""The filter, in classic BPF, of the system calls that the kernel refuses to guests.

The kernel refuses calls that read or control other processes, use the kernel's keys, change the kernel, or make
mounts. It also refuses the set-user-id bit, because root may own a guest's files. Only sockets of the internet, of
this machine and of netlink are allowed. A guest can neither enlarge socket buffers nor move
its memory into a pipe. A program of another architecture may make no call.
"""

import platform
import struct
from dataclasses import dataclass
from functools import cache
from typing import Final

_LOAD, _EQUAL, _AT_LEAST, _HAS_ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 24, 32
_ARGUMENT_BYTES: Final = 8
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | 1
"""The action that makes a call fail with EPERM."""
_UNKNOWN: Final = 0x00050000 | 38
"""The action that makes a call fail with ENOSYS, for a call with arguments that no filter can read: programs then
use the older call."""
_PRETEND: Final = 0x00050000
"""The action that makes a call do nothing and report success."""
_RUNS_AS_OWNER: Final = 0o4000
_MAKES_A_FILE: Final = 0o100 | 0o20000000
"""O_CREAT and O_TMPFILE: without these flags `open` has no mode."""
_OPENAT2, _FCHMODAT2 = 437, 452
_X32: Final = 0x40000000
_TERMINAL_REQUESTS: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which type into a terminal."""
_OF_SOCKETS, _BUFFERS = 1, (7, 8)
"""SOL_SOCKET with SO_SNDBUF and SO_RCVBUF, for the sizes of buffers; the supervisor counts on the usual sizes."""
_SOCKETS: Final = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""
_NEW_REFUSED: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442, "quotactl_fd": 443,
}  # fmt: skip
"""The refused calls of kernels since 5.1, whose numbers are the same on all machines."""


@dataclass(frozen=True, slots=True)
class _Machine:
    architecture: int
    """The number of the architecture in the kernel's audit."""
    socket: int
    ioctl: int
    setsockopt: int
    vmsplice: int
    """The number of the call that puts a process's memory into a pipe; such memory counts for no process's
    limit."""
    refused: tuple[int, ...]
    modes: tuple[tuple[int, int], ...]
    """The calls that give a file its mode, each with the number of the mode's argument."""
    opens: tuple[tuple[int, int], ...]
    """The calls that give a new file its mode, each with the number of the argument with flags, which precedes the
    mode."""
    has_x32: bool = False


_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E, 41, 16, 54, 278,
        # ptrace, process_vm_readv and _writev, kcmp; add_key, request_key, keyctl; bpf, perf events, userfaultfd
        (101, 310, 311, 312, 248, 249, 250, 321, 298, 323,
         # mount, umount2, pivot_root, chroot, setns, name_to_handle_at, open_by_handle_at, swapon, swapoff
         165, 166, 155, 161, 308, 303, 304, 167, 168,
         # init_module, finit_module, delete_module, kexec_load, kexec_file_load, reboot, syslog, acct, quotactl
         175, 313, 176, 246, 320, 169, 103, 163, 179,
         # settimeofday, clock_settime; iopl, ioperm
         164, 227, 172, 173),
        # chmod, fchmod, fchmodat, creat, mknod, mknodat; open, openat
        ((90, 1), (91, 1), (268, 2), (85, 1), (133, 1), (259, 2)),
        ((2, 1), (257, 2)),
        has_x32=True,
    ),
    "aarch64": _Machine(
        0xC00000B7, 198, 29, 208, 75,
        (117, 270, 271, 272, 217, 218, 219, 280, 241, 282,
         40, 39, 41, 51, 268, 264, 265, 224, 225,
         105, 273, 106, 104, 294, 142, 116, 89, 60,
         170, 112),
        # fchmod, fchmodat, mknodat; openat
        ((52, 1), (53, 2), (33, 2)),
        ((56, 2),),
    ),
}  # fmt: skip


@cache
def refused_system_calls(machine: str = "") -> bytes:
    """Return the filter for bubblewrap; empty if `machine` is unknown. The default is this machine."""
    known = _MACHINES.get(machine or platform.machine())
    return b"" if known is None else _assemble(known)


def _assemble(machine: _Machine) -> bytes:
    """Return the filter's instructions, in groups; a call that a group does not decide goes to the next group."""
    program = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, machine.architecture, if_true=1),
        _step(_RETURN, _REFUSE),
        _step(_LOAD, _NUMBER),
    ]
    if machine.has_x32:
        program += [_step(_AT_LEAST, _X32, if_false=1), _step(_RETURN, _REFUSE)]
    for number in (*machine.refused, *sorted(_NEW_REFUSED.values())):
        program += [_step(_EQUAL, number, if_false=1), _step(_RETURN, _REFUSE)]
    for number in (_OPENAT2, machine.vmsplice):
        program += [_step(_EQUAL, number, if_false=1), _step(_RETURN, _UNKNOWN)]
    for call, mode in (*machine.modes, (_FCHMODAT2, 2)):
        program += _without_owner(call, mode)
    for call, flags in machine.opens:
        program += _without_owner(call, flags + 1, flags)
    program += _by_argument(machine.socket, _FIRST_ARGUMENT, _SOCKETS, in_list=_ALLOW, others=_REFUSE)
    program += _by_argument(machine.ioctl, _SECOND_ARGUMENT, _TERMINAL_REQUESTS, in_list=_REFUSE, others=_ALLOW)
    buffers = _decide(_THIRD_ARGUMENT, _BUFFERS, in_list=_PRETEND, others=_ALLOW)
    level = [_step(_LOAD, _SECOND_ARGUMENT), _step(_EQUAL, _OF_SOCKETS, if_false=len(buffers))]
    program += [_step(_EQUAL, machine.setsockopt, if_false=len(level + buffers)), *level, *buffers]
    program.append(_step(_RETURN, _ALLOW))
    return b"".join(program)


def _by_argument(call: int, argument: int, values: tuple[int, ...], *, in_list: int, others: int) -> list[bytes]:
    """Return the instructions for a call: the action `in_list` if an argument is in `values`, else `others`."""
    body = _decide(argument, values, in_list=in_list, others=others)
    return [_step(_EQUAL, call, if_false=len(body)), *body]


def _decide(argument: int, values: tuple[int, ...], *, in_list: int, others: int) -> list[bytes]:
    tests = [part for value in values for part in (_step(_EQUAL, value, if_false=1), _step(_RETURN, in_list))]
    return [_step(_LOAD, argument), *tests, _step(_RETURN, others)]


def _without_owner(call: int, mode: int, flags: int | None = None) -> list[bytes]:
    """Return instructions that refuse set-user-id in argument number `mode`; with `flags`, only for a new file."""
    body = [
        _step(_LOAD, _FIRST_ARGUMENT + mode * _ARGUMENT_BYTES),
        _step(_HAS_ANY, _RUNS_AS_OWNER, if_false=1),
        _step(_RETURN, _REFUSE),
        _step(_RETURN, _ALLOW),
    ]
    if flags is not None:
        load = _step(_LOAD, _FIRST_ARGUMENT + flags * _ARGUMENT_BYTES)
        body = [load, _step(_HAS_ANY, _MAKES_A_FILE, if_false=len(body) - 1), *body]
    return [_step(_EQUAL, call, if_false=len(body)), *body]


def _step(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
