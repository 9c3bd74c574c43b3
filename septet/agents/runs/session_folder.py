"""The folder of a CLI in which its sessions lie: the user's own, or that of a work order, which guests write."""

from dataclasses import dataclass
from pathlib import Path

from septet.system.durable import write_atomically
from septet.system.guarded_folder import GuardedFolder


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """Names in it are relative to the CLI's first folder of its own."""

    root: Path
    home: Path | None = None
    """The home of a work order that holds it: guests write there, and no link below it is followed. `None` for the
    user's own folder, which may have links of the user's."""

    @property
    def _guard(self) -> GuardedFolder | None:
        """The folder as one in which guests write; `None` for the user's own."""
        return None if self.home is None else GuardedFolder(self.home, str(self.root.relative_to(self.home)))

    def find(self, pattern: str) -> list[str]:
        """Return the names of the files that a pattern fits; a file that is a link itself is none."""
        if self._guard is not None:
            return self._guard.find(pattern)
        paths = (path for path in self.root.glob(pattern) if path.is_file() and not path.is_symlink())
        return sorted(str(path.relative_to(self.root)) for path in paths)

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """Return what a file holds; `None` where it is not there, or larger."""
        if self._guard is not None:
            return self._guard.read(name, limit_bytes)
        path = self.root / name
        return path.read_bytes() if path.is_file() and path.stat().st_size <= limit_bytes else None

    def changed_at(self, name: str) -> float | None:
        """Return when a file was written last; `None` where it is not there."""
        if self._guard is not None:
            return self._guard.changed_at(name)
        path = self.root / name
        return path.stat().st_mtime if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Put a file there, with the folders that lead to it.

        Raises:
            OSError: The disk refused.
        """
        (self.home or self.root).mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._guard is not None:
            self._guard.write(name, content)
            return
        path = self.root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, content)
