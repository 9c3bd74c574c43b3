"""The parts of a guest's sandbox; each part returns arguments for bubblewrap.

A sandbox begins as an empty file system without other processes. A guest sees only the files that a part names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Literal, Protocol

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""The system's folders; on most systems, all but `/usr` are links into `/usr`."""
_SETTINGS: Final = (
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/os-release", "/etc/mime.types",
    "/etc/protocols", "/etc/services", "/etc/fonts",
    "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/openssl.cnf",
    "/etc/pki/ca-trust", "/etc/pki/java", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf", "/etc/pki/tls/openssl.d", "/etc/pki/tls/ct_log_list.cnf",
    "/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk",
)  # fmt: skip
"""The system's settings that programs read; no file holds a key. The list is short: each bind slows each start."""
_NETWORK_SETTINGS: Final = ("/etc/resolv.conf", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf")
HOST_NAME: Final = "guest"
_TMP: Final = "/tmp"
TEMPORARY_FOLDER: Final = f"{_TMP}/guest"
"""The folder for temporary files. It is not `/tmp`: codex runs nothing if its own folder lies below TMPDIR."""
USER_ID: Final = 1000
"""The id of the guest's user in the sandbox, where the files of the worker's user belong to this id."""


class Protection(Protocol):
    """One part of a guest's sandbox."""

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments for bubblewrap."""


@dataclass(frozen=True, slots=True)
class OwnNamespace:
    """A namespace that the guest does not share with the machine."""

    kind: Literal["user", "pid", "ipc", "uts", "cgroup"]

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments to make the namespace; for `uts`, also the guest's host name."""
        own_name = ("--hostname", HOST_NAME) if self.kind == "uts" else ()
        suffix = "-try" if self.kind == "cgroup" else ""
        return (f"--unshare-{self.kind}{suffix}", *own_name)


@dataclass(frozen=True)
class FixedProtection:
    """A part of a guest's sandbox with the same arguments for all guests."""

    fixed: ClassVar[tuple[str, ...]] = ()

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments for bubblewrap."""
        return self.fixed


class OwnUser(FixedProtection):
    """A separate user for the guest, which is never root and cannot make user namespaces."""

    fixed = ("--uid", str(USER_ID), "--gid", str(USER_ID), "--disable-userns")


class NoCapabilities(FixedProtection):
    """No capabilities, even if the worker is root."""

    fixed = ("--cap-drop", "ALL")


class EndsWithSupervisor(FixedProtection):
    """Ends the guest, with all processes that the guest started, when its supervisor ends."""

    fixed = ("--die-with-parent",)


@dataclass(frozen=True, slots=True)
class SystemFiles:
    """The system's programs, and the system's settings that `_SETTINGS` names, read-only."""

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments to mount the files that exist; links stay links."""
        arguments: list[str] = []
        for path in map(Path, (*SYSTEM_FOLDERS, *_SETTINGS)):
            if path.is_symlink():
                arguments += ["--symlink", str(path.readlink()), str(path)]
            elif path.exists():
                arguments += ["--ro-bind", str(path), str(path)]
        return tuple(arguments)


class OwnProcesses(FixedProtection):
    """A private `/proc` with read-only kernel settings, which a root guest could otherwise change."""

    fixed = ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")


class OwnDevices(FixedProtection):
    """A private `/dev` with harmless devices only, and up to 256 MiB of private shared memory."""

    fixed = ("--dev", "/dev", "--size", str(256 * _MIB), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")


class OwnTemporaryFiles(FixedProtection):
    """A private `/tmp` and a private `/run`, without other programs' sockets; these folders end with the guest."""

    fixed = (
        "--size", str(1024 * _MIB), "--perms", "1777", "--tmpfs", _TMP, "--dir", TEMPORARY_FOLDER,
        # The link is relative: bubblewrap follows it to make mount points below.
        "--dir", "/var", "--symlink", f"..{_TMP}", "/var/tmp",
        "--size", str(16 * _MIB), "--tmpfs", "/run",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class OwnHome:
    """An empty home in memory; other parts mount those files of the user's home that a guest sees."""

    home: Path

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments to make the empty home."""
        return ("--size", str(1024 * _MIB), "--perms", "0700", "--tmpfs", str(self.home))


@dataclass(frozen=True)
class OwnAccounts(FixedProtection):
    """A list of users with only the guest, root and the overflow user; see `Description.texts`."""

    home: Path

    def texts(self) -> Mapping[str, str]:
        """Return the contents of `/etc/passwd` and `/etc/group`, by path."""
        user = f"agent:x:{USER_ID}:{USER_ID}::{self.home}:/bin/sh"
        return {
            "/etc/passwd": f"root:x:0:0::/:/bin/false\n{user}\nnobody:x:65534:65534::/:/bin/false\n",
            "/etc/group": f"root:x:0:\nagent:x:{USER_ID}:\nnogroup:x:65534:\n",
        }


class HostNetwork(FixedProtection):
    """The machine's own network and name resolution, without restrictions."""

    def texts(self) -> Mapping[str, str]:
        """Return the contents of the files for name resolution, by path, with the guest's host name added."""
        texts = {path: _text_of(path) for path in _NETWORK_SETTINGS if Path(path).exists()}
        return {**texts, "/etc/hosts": f"{_text_of('/etc/hosts')}\n127.0.1.1 {HOST_NAME}\n"}


@dataclass(frozen=True, slots=True)
class Binding:
    """A file or folder of the machine that guests see at the same path."""

    path: Path
    writable: bool = False

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments to mount the path; a missing path is no error."""
        return ("--bind-try" if self.writable else "--ro-bind-try", str(self.path), str(self.path))


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link that guests see at the same path as on the machine."""

    path: Path
    target: str

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments to make the link."""
        return ("--symlink", self.target, str(self.path))


@dataclass(frozen=True, slots=True)
class Cover:
    """A folder that guests see empty, even if a folder around it is mounted; later mounts may fill it."""

    path: Path

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments to mount an empty folder over the folder."""
        return ("--size", str(64 * _KIB), "--perms", "0755", "--tmpfs", str(self.path))


@dataclass(frozen=True, slots=True)
class SealedFolders:
    """Parent folders of mounts, made read-only after all mounts; this part comes last."""

    folders: tuple[Path, ...] = (Path("/"),)

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments to remount the folders read-only."""
        return tuple(part for path in self.folders for part in ("--remount-ro", str(path)))


@dataclass(frozen=True, slots=True)
class StartsIn:
    """The folder in which the guest's program starts."""

    folder: Path

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments to start in the folder."""
        return ("--chdir", str(self.folder))


@dataclass(frozen=True)
class RefusedSystemCalls(FixedProtection):
    """The system calls that the kernel refuses to the guest; see `Description.system_calls`."""

    program: bytes = field(repr=False)


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
