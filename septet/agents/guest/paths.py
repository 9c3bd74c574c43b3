"""Files of the machine that guests see in addition to the system's files.

`SEPTET_GUEST_PATHS` names such files. An earlier guest may have left a link in a folder of its home. A mount over
the link could lead out of the sandbox. `make_mount_points` therefore makes mount points that are no links.
"""

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from septet.agents.guest.sandbox_parts import Protection
from septet.errors import InvalidInputError
from septet.system.guarded_folder import GuardedFolder


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """A folder for the guest, at the path that the guest's program expects."""

    source: Path
    """The folder on the machine."""
    path: Path
    """The path for the guest."""
    writable: bool = True
    """Whether the guest may write; several guests read a folder that is not writable."""

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments to mount the folder; without the folder, the guest does not start."""
        return ("--bind" if self.writable else "--ro-bind", str(self.source), str(self.path))


@dataclass(frozen=True, slots=True)
class PlacedInOwnFolder:
    """A file or folder of the machine that the guest sees inside a folder of its home."""

    source: Path
    folder: OwnFolder
    name: Path
    """The path relative to `folder`."""
    writable: bool = False

    def arguments(self) -> tuple[str, ...]:
        """Return bubblewrap's arguments to mount the source; bubblewrap skips a missing source."""
        how = "--bind-try" if self.writable else "--ro-bind-try"
        return (how, str(self.source), str(self.folder.path / self.name))


def make_mount_points(protections: Iterable[Protection]) -> None:
    """Make the mount points in guests' folders, and follow no links; the caller holds the writer's lock.

    Raises:
        OSError: The disk refused.
    """
    for each in protections:
        if isinstance(each, PlacedInOwnFolder) and each.source.exists():
            place = GuardedFolder(each.folder.source)
            place.make_place(str(each.name), is_folder=each.source.is_dir())


_WRITABLE: Final = ":rw"
_REMEDY: Final = (
    "Separate paths by commas; each is absolute or begins with `~/`, and guests may write where `:rw` follows."
)
_OF_A_SOCKET: Final = (
    "guests can do everything that its server does for this user; with docker or podman that is the whole machine."
)
_SHOWN: Final = 3
_KEYS: Final = (".ssh", ".gnupg", ".aws", ".netrc", ".config", ".docker", ".kube", ".git-credentials")
"""The usual places of a user's keys, below the home."""


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A file or folder that a setting names; guests see it at the same path as on the machine."""

    path: Path
    writable: bool = False

    @classmethod
    def parse(cls, text: str, home: Path) -> Self:
        """Return the path in an entry of the setting `SEPTET_GUEST_PATHS`.

        Raises:
            InvalidInputError: The entry is no absolute path.
        """
        name = text.strip().removesuffix(_WRITABLE)
        path = home / name[2:] if name.startswith("~/") else home if name == "~" else Path(name)
        if not path.is_absolute() or ".." in path.parts:
            raise InvalidInputError(f"SEPTET_GUEST_PATHS: {text!r} is not an absolute path.", remedy=_REMEDY)
        return cls(path, text.strip().endswith(_WRITABLE))

    def opening(self, home: Path) -> str:
        """Return a warning about what guests can do through the path, for the person who named the path."""
        if not self.path.exists():
            return f"{self.path} does not exist: it opens nothing."
        if _is_socket(self.path):
            return f"{self.path} is a socket: through it, {_OF_A_SOCKET}"
        keys = [name for name in _KEYS if (home / name).is_relative_to(self.path) and (home / name).exists()]
        keys += [name for name in _KEYS if self.path.is_relative_to(home / name)]
        holds = f", and ~/{keys[0]} with it, where keys usually lie" if keys else ""
        sockets = _sockets_in(self.path)
        named = f" {', '.join(sockets[:_SHOWN])}{' and others' if len(sockets) > _SHOWN else ''}"
        opens = f" There are sockets in it:{named}. Through each of them, {_OF_A_SOCKET}" if sockets else ""
        if self.writable:
            left = "anything that runs from there later runs what they left"
            return f"guests can change {self.path}{holds}: {left}.{opens}"
        return f"guests can read {self.path}{holds}.{opens}"


def _sockets_in(path: Path) -> list[str]:
    try:
        return sorted(each.name for each in path.iterdir() if _is_socket(each))
    except OSError:
        return []


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def parse_named_paths(texts: tuple[str, ...], home: Path) -> tuple[NamedPath, ...]:
    """Return the paths in the entries of the setting `SEPTET_GUEST_PATHS`.

    Raises:
        InvalidInputError: An entry is no absolute path.
    """
    return tuple(NamedPath.parse(text, home) for text in texts if text.strip())
