"""Find the line of a key in a TOML text, because the standard library's parser does not report lines."""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
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
    """Yield the first line of each whole statement, and the full path of its key."""
    table: list[str] = []
    lines, first = text.split("\n"), 0
    while first < len(lines):
        count, path = _statement_at(lines, first)
        if lines[first].lstrip().startswith("[") and count:
            table = path
            yield first + 1, table
        elif path:
            yield first + 1, [*table, *path]
        first += count or 1


def _statement_at(lines: Sequence[str], first: int) -> tuple[int, list[str]]:
    """Return the number of lines of the statement at `first`, and its key; 0 if none begins or it is too long."""
    if "=" in lines[first] or lines[first].lstrip().startswith("["):
        for last in range(first + 1, min(first + _LONGEST_STATEMENT_LINES, len(lines)) + 1):
            with suppress(tomllib.TOMLDecodeError):
                return last - first, _path(tomllib.loads("\n".join(lines[first:last])))
    return 0, []


def _path(value: object) -> list[str]:
    """Return the keys that lead to the only value in nested tables; an inline table with one key is a path too."""
    path: list[str] = []
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        path.append(key)
    return path
