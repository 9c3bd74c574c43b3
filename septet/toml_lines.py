"""Find the line of a key in a TOML text, because the standard library's parser does not report lines."""

import tomllib
from collections.abc import Iterator, Sequence
from typing import Final

_LONGEST_STATEMENT_LINES: Final = 50
"""The most lines of a statement: longer statements are skipped, so that the search is fast in any file."""


def line_of(text: str, path: Sequence[int | str]) -> int:
    """Return the line, from 1, on which the value at `path` begins, or else the line of the nearest key.

    `path` begins at the outermost table; its numbers are positions in a list.
    """
    keys = [part for part in path if isinstance(part, str)]
    nearest, depth = 1, 0
    for line, key in _keys(text):
        shared = key[: len(keys)]
        if len(shared) > depth and shared == keys[: len(shared)]:
            nearest, depth = line, len(shared)
    return nearest


def _keys(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each statement's first line and the full path of its key."""
    table: list[str] = []
    for line, statement in _statements(text.split("\n")):
        path = _path(tomllib.loads(statement))
        if statement.lstrip().startswith("["):
            table = path
            yield line, table
        elif path:
            yield line, [*table, *path]


def _statements(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield each statement with the number of its first line; skip lines without a whole statement."""
    first = 0
    while first < len(lines):
        statement = _statement_at(lines, first)
        if statement:
            yield first + 1, "\n".join(statement)
        first += len(statement) or 1


def _statement_at(lines: Sequence[str], first: int) -> Sequence[str]:
    """Return the lines of the statement that begins at `first`; empty if none begins, or if it is too long."""
    if "=" not in lines[first] and not lines[first].lstrip().startswith("["):
        return ()
    for last in range(first + 1, min(first + _LONGEST_STATEMENT_LINES, len(lines)) + 1):
        if _is_toml("\n".join(lines[first:last])):
            return lines[first:last]
    return ()


def _is_toml(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _path(value: object) -> list[str]:
    """Return the keys that lead to the only value in nested tables; an inline table with one key is a path too."""
    path: list[str] = []
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        path.append(key)
    return path
