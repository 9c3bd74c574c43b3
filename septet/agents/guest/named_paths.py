"""Read the paths of `SEPTET_GUEST_PATHS`, which guests see in addition, and describe what each path opens."""

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from septet.errors import InvalidInputError

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
    """A file or folder of the machine that guests see at its own path."""

    path: Path
    writable: bool = False

    @classmethod
    def parse(cls, text: str, home: Path) -> Self:
        """Read one entry of the setting.

        Raises:
            InvalidInputError: The entry is no absolute path.
        """
        name = text.strip().removesuffix(_WRITABLE)
        path = home / name[2:] if name.startswith("~/") else home if name == "~" else Path(name)
        if not path.is_absolute() or ".." in path.parts:
            raise InvalidInputError(f"SEPTET_GUEST_PATHS: {text!r} is not an absolute path.", remedy=_REMEDY)
        return cls(path, text.strip().endswith(_WRITABLE))

    def opening(self, home: Path) -> str:
        """Return a text on what the path opens to guests, for the person who named the path."""
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
    """Return the names of the sockets directly in a folder."""
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
    """Read the setting.

    Raises:
        InvalidInputError: An entry is no absolute path.
    """
    return tuple(NamedPath.parse(text, home) for text in texts if text.strip())
