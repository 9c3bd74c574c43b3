"""Processes as the system knows them: the living, their parents, and those of a trial."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from septet.agents.supervisor import PROGRAM

_PARENT_FIELD, _BORN_FIELD, _STATE_FIELD = 1, 19, 0


@dataclass(frozen=True, slots=True)
class Pid:
    """A process: its number and its start in the kernel's ticks."""

    number: int
    born: int

    @classmethod
    def of(cls, number: int) -> "Pid":
        """Return the process that has this number now; a process without a start if none has."""
        fields = _fields(number)
        return cls(number, int(fields[_BORN_FIELD]) if fields else 0)

    @classmethod
    def found(cls, number: int, born: int, namespace: str) -> "Pid":
        """Return, in this namespace, a process that reported its number in its own pid namespace."""
        if namespace == _namespace("self"):
            return cls(number, born)
        for other in _numbers():
            fields = _fields(other)
            inside = bool(fields) and int(fields[_BORN_FIELD]) == born and _namespace(str(other)) == namespace
            if inside and _number_inside(other) == number:
                return cls(other, born)
        return NOBODY

    @property
    def lives(self) -> bool:
        """Return whether it runs and is no zombie."""
        fields = _fields(self.number)
        return bool(fields) and int(fields[_BORN_FIELD]) == self.born and fields[_STATE_FIELD] not in "ZX"

    @property
    def parent(self) -> "Pid":
        """Return its parent."""
        fields = _fields(self.number)
        return Pid.of(int(fields[_PARENT_FIELD])) if fields else Pid(0, 0)

    def signal(self, number: int) -> bool:
        """Send it a signal, and return whether it was alive."""
        if not self.lives:
            return False
        with suppress(ProcessLookupError):
            os.kill(self.number, number)
            return True
        return False


NOBODY = Pid(0, 0)


def of_folder(folder: Path) -> list[Pid]:
    """Return the living processes that name a folder in environment, arguments or working folder."""
    text = os.fsencode(folder)
    found = [Pid.of(number) for number in _numbers() if number != os.getpid() and _names(number, text)]
    return [pid for pid in found if pid.lives]


def supervisor_of(agent: Pid) -> Pid:
    """Return the supervisor above an agent, also outside of a sandbox; `NOBODY` without a supervisor."""
    above = agent.parent
    while above.number > 1 and PROGRAM not in command_of(above):
        above = above.parent
    return above if above.number > 1 else NOBODY


def children_of(parent: Pid) -> list[Pid]:
    """Return the children of a process."""
    found = (Pid.of(number) for number in _numbers())
    return [pid for pid in found if parent.lives and pid.parent == parent]


def sockets_of(pid: Pid) -> frozenset[str]:
    """Return the kernel's names of the sockets that a process holds open; none if it has ended."""
    found = set()
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid.number}/fd").iterdir():
            with suppress(OSError):
                found.add(str(descriptor.readlink()))
    return frozenset(name for name in found if name.startswith("socket:"))


def command_of(pid: Pid) -> str:
    """Return a process's command line, for people."""
    try:
        argv = Path(f"/proc/{pid.number}/cmdline").read_bytes()
    except OSError:
        return ""
    return argv.replace(b"\0", b" ").decode(errors="replace")[:200]


def _numbers() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())


def _names(number: int, text: bytes) -> bool:
    for name in ("environ", "cmdline"):
        with suppress(OSError):
            if text in Path(f"/proc/{number}/{name}").read_bytes():
                return True
    with suppress(OSError):
        return os.fsencode(Path(f"/proc/{number}/cwd").readlink()).startswith(text)
    return False


def _namespace(name: str) -> str:
    try:
        return str(Path(f"/proc/{name}/ns/pid").readlink())
    except OSError:
        return ""


def _number_inside(number: int) -> int:
    """Return a process's number in its innermost pid namespace."""
    with suppress(OSError):
        for line in Path(f"/proc/{number}/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return 0


def _fields(number: int) -> list[str]:
    """Return the fields of `/proc/N/stat` from the state on; none without the process."""
    try:
        return (
            Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()
        )
    except OSError:
        return []
