"""Parse git's output about changed files: `git status --porcelain=v2 -z` and `git diff --name-status -z`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from septet.contracts.facts import FileChange, Operation


@dataclass(frozen=True, slots=True)
class StatusEntry:
    """One path in `git status`: how the index differs from HEAD, and the worktree from the index."""

    path: bytes
    staged: str
    """How the index differs from HEAD: one of `.AMDRCTU`, or `?` for an untracked file."""
    unstaged: str
    origin: bytes | None = None
    """The earlier path of a renamed or copied file; `None` for other files."""

    @property
    def is_untracked(self) -> bool:
        """Whether the index lacks the path."""
        return self.staged == "?"

    @property
    def is_nested_repository(self) -> bool:
        """Whether the path is a separate repository, which no commit can include."""
        return self.is_untracked and self.path.endswith(b"/")

    @property
    def change(self) -> tuple[Operation, bytes] | None:
        """The operation between HEAD and the worktree, and the path; `None` if neither has the file."""
        is_gone = "D" in (self.staged, self.unstaged)
        if "R" in (self.staged, self.unstaged) and self.origin is not None:
            return ("delete", self.origin) if is_gone else ("rename", self.path)
        if self.staged in {"?", "A", "C"} or self.unstaged in {"A", "C"}:
            return None if is_gone else ("create", self.path)
        return ("delete" if is_gone else "modify", self.path)


def read_status(output: bytes) -> Iterator[StatusEntry]:
    """Yield the entries of `git status --porcelain=v2 -z`, without ignored files."""
    fields = iter(output.split(b"\0"))
    for field in fields:
        match field[:2]:
            case b"1 ":
                yield _entry(field, 8)
            case b"2 ":
                yield _entry(field, 9, next(fields))
            case b"u ":
                yield StatusEntry(field.split(b" ", 10)[10], "U", "U")
            case b"? ":
                yield StatusEntry(field[2:], "?", "?")


def read_name_status(output: bytes) -> Iterator[tuple[Operation, bytes]]:
    """Yield the operations and paths of `git diff --name-status -z`."""
    fields = iter(output.split(b"\0"))
    for status in fields:
        match status[:1]:
            case b"A":
                yield "create", next(fields)
            case b"D":
                yield "delete", next(fields)
            case b"R" | b"C":
                next(fields)
                yield "rename" if status[:1] == b"R" else "create", next(fields)
            case b"":
                return
            case _:
                yield "modify", next(fields)


def file_changes(changes: Iterable[tuple[Operation, bytes]]) -> tuple[FileChange, ...]:
    """Return the changes as a step's result has them, sorted by path."""
    pairs = {(shown_path(path), operation) for operation, path in changes}
    return tuple(FileChange(path=path, operation=operation) for path, operation in sorted(pairs))


def shown_path(path: bytes) -> str:
    r"""Return a path for people; bytes that are not UTF-8 are shown as `\xNN`."""
    return path.decode("utf-8", "backslashreplace")


def _entry(field: bytes, spaces: int, origin: bytes | None = None) -> StatusEntry:
    parts = field.split(b" ", spaces)
    return StatusEntry(parts[spaces], chr(parts[1][0]), chr(parts[1][1]), origin)
