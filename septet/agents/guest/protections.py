"""The parts that a guest's world is made of: each gives arguments of bubblewrap, in the order of the list.

A world begins as an empty file system with no processes but its own. What a guest sees of the machine it sees
because one of these names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""All but the first are links into it on most systems, and folders of their own on some."""
_SETTINGS: Final = (
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/os-release", "/etc/mime.types",
    "/etc/protocols", "/etc/services", "/etc/fonts",
    "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/openssl.cnf",
    "/etc/pki/ca-trust", "/etc/pki/java", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf", "/etc/pki/tls/openssl.d", "/etc/pki/tls/ct_log_list.cnf",
    "/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk",
)  # fmt: skip
"""What programs read of any machine; none of it holds a key. Few, for each one that is bound costs each start."""
_NETWORK_SETTINGS: Final = ("/etc/resolv.conf", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf")
HOST_NAME: Final = "guest"
_TMP: Final = "/tmp"
TEMPORARY_FOLDER: Final = f"{_TMP}/guest"
"""Not `/tmp` itself: codex runs nothing where its folder lies below that for temporary files."""
USER_ID: Final = 1000
"""The user that a guest is in its own eyes: it owns what the worker's user owns."""


class Protection(Protocol):
    """One part of a guest's world."""

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments for bubblewrap."""


@dataclass(frozen=True, slots=True)
class OwnNamespace:
    """A namespace of its own: nothing of that kind is shared with the machine."""

    kind: Literal["user", "pid", "ipc", "uts", "cgroup"]

    def arguments(self) -> tuple[str, ...]:
        """Unshare it; a host's name is its own too where that is unshared."""
        own_name = ("--hostname", HOST_NAME) if self.kind == "uts" else ()
        suffix = "-try" if self.kind == "cgroup" else ""
        return (f"--unshare-{self.kind}{suffix}", *own_name)


@dataclass(frozen=True, slots=True)
class OwnUser:
    """A user of its own, which is never root and can make no further namespace of users."""

    def arguments(self) -> tuple[str, ...]:
        """Map the worker's user to an ordinary one."""
        return ("--uid", str(USER_ID), "--gid", str(USER_ID), "--disable-userns")


@dataclass(frozen=True, slots=True)
class NoCapabilities:
    """Nothing that only root may do, also for a worker that is root."""

    def arguments(self) -> tuple[str, ...]:
        """Drop all of them."""
        return ("--cap-drop", "ALL")


@dataclass(frozen=True, slots=True)
class EndsWithSupervisor:
    """The end of the supervisor is its end, and that of all that it started."""

    def arguments(self) -> tuple[str, ...]:
        """Have the kernel see to it."""
        return ("--die-with-parent",)


@dataclass(frozen=True, slots=True)
class SystemFiles:
    """The programs of the system and their settings, by an allow-list, to be read."""

    def arguments(self) -> tuple[str, ...]:
        """Bind what is there; links stay links."""
        arguments: list[str] = []
        for path in map(Path, (*SYSTEM_FOLDERS, *_SETTINGS)):
            if path.is_symlink():
                arguments += ["--symlink", str(path.readlink()), str(path)]
            elif path.exists():
                arguments += ["--ro-bind", str(path), str(path)]
        return tuple(arguments)


@dataclass(frozen=True, slots=True)
class OwnProcesses:
    """A `/proc` of its own, whose switches of the kernel nobody turns: for root the kernel would let it."""

    def arguments(self) -> tuple[str, ...]:
        """Mount it, and bind `/proc/sys` over itself to be read."""
        return ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")


@dataclass(frozen=True, slots=True)
class OwnDevices:
    """The harmless devices alone, and shared memory of its own."""

    shared_memory_bytes: int = 256 * _MIB

    def arguments(self) -> tuple[str, ...]:
        """Make them."""
        size = str(self.shared_memory_bytes)
        return ("--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev")


@dataclass(frozen=True, slots=True)
class OwnTemporaryFiles:
    """A `/tmp` and a `/run` of its own: no sockets of others, and gone with the guest."""

    size_bytes: int = 1024 * _MIB

    def arguments(self) -> tuple[str, ...]:
        """Make them, in memory."""
        temporary = ("--size", str(self.size_bytes), "--perms", "1777", "--tmpfs", _TMP, "--dir", TEMPORARY_FOLDER)
        # Relative: the place of what is bound below it is made through it.
        variable = ("--dir", "/var", "--symlink", f"..{_TMP}", "/var/tmp")
        return (*temporary, *variable, "--size", str(16 * _MIB), "--tmpfs", "/run")


@dataclass(frozen=True, slots=True)
class OwnHome:
    """An empty home: what a guest needs of the user's own is named."""

    home: Path
    size_bytes: int = 1024 * _MIB

    def arguments(self) -> tuple[str, ...]:
        """Make it, in memory."""
        return ("--size", str(self.size_bytes), "--perms", "0700", "--tmpfs", str(self.home))


@dataclass(frozen=True, slots=True)
class OwnAccounts:
    """A list of users with nobody in it but the guest and root; see `Description.texts`."""

    home: Path

    def arguments(self) -> tuple[str, ...]:
        """Nothing: the texts are files of their own."""
        return ()

    def texts(self) -> Mapping[str, str]:
        """Return the files by their paths."""
        user = f"agent:x:{USER_ID}:{USER_ID}::{self.home}:/bin/sh"
        return {
            "/etc/passwd": f"root:x:0:0::/:/bin/false\n{user}\nnobody:x:65534:65534::/:/bin/false\n",
            "/etc/group": f"root:x:0:\nagent:x:{USER_ID}:\nnogroup:x:65534:\n",
        }


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """The machine's own network, with what resolves its names: nothing is kept from the guest here."""

    def arguments(self) -> tuple[str, ...]:
        """Nothing: it has no namespace of its own."""
        return ()

    def texts(self) -> Mapping[str, str]:
        """Return what names are resolved by, with the guest's own name."""
        texts = {path: _text_of(path) for path in _NETWORK_SETTINGS if Path(path).exists()}
        return {**texts, "/etc/hosts": f"{_text_of('/etc/hosts')}\n127.0.1.1 {HOST_NAME}\n"}


@dataclass(frozen=True, slots=True)
class Binding:
    """A file or folder of the machine, seen at its own path."""

    path: Path
    writable: bool = False

    def arguments(self) -> tuple[str, ...]:
        """Bind it; one that has gone since is no error."""
        return ("--bind-try" if self.writable else "--ro-bind-try", str(self.path), str(self.path))


@dataclass(frozen=True, slots=True)
class Link:
    """A link that stands where the machine has it."""

    path: Path
    target: str

    def arguments(self) -> tuple[str, ...]:
        """Make it."""
        return ("--symlink", self.target, str(self.path))


@dataclass(frozen=True, slots=True)
class Cover:
    """A folder that is empty for guests, whatever else was bound around it; what follows may be bound into it."""

    path: Path

    def arguments(self) -> tuple[str, ...]:
        """Lay an empty one over it."""
        return ("--size", str(64 * _KIB), "--perms", "0755", "--tmpfs", str(self.path))


@dataclass(frozen=True, slots=True)
class SealedFolders:
    """What the folders hold that only lead to others cannot be changed; it comes last."""

    folders: tuple[Path, ...] = (Path("/"),)

    def arguments(self) -> tuple[str, ...]:
        """Let them be read alone."""
        return tuple(part for path in self.folders for part in ("--remount-ro", str(path)))


@dataclass(frozen=True, slots=True)
class StartsIn:
    """The folder in which its program starts."""

    folder: Path

    def arguments(self) -> tuple[str, ...]:
        """Change into it."""
        return ("--chdir", str(self.folder))


@dataclass(frozen=True, slots=True)
class RefusedSystemCalls:
    """What the kernel refuses to do for it; see `Description.system_calls`."""

    program: bytes = field(repr=False)

    def arguments(self) -> tuple[str, ...]:
        """Nothing: the filter goes over a descriptor."""
        return ()


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
