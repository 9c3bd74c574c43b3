"""Read many objects of a repository with few processes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from septet.errors import SnapshotError
from septet.git.engine.engine import Git

_BATCH_BYTES: Final = 32 << 20
"""The most bytes in memory at a time; a larger object is read alone."""
_MISSING: Final = b"missing"


def read_blobs(repository: Git, sizes: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    """Yield the id and content of each blob.

    Args:
        repository: The repository with the blobs.
        sizes: Id → size in bytes.

    Raises:
        SnapshotError: A blob is missing.
    """
    for batch in _batches(sizes):
        for sha, content in read_objects(repository, batch).items():
            if content is None:
                raise SnapshotError(f"Object {sha} is missing from {repository.git_dir}.")
            yield sha, content


def read_objects(repository: Git, names: Iterable[str]) -> dict[str, bytes | None]:
    """Return the content of each object by its id in `names`; `None` for a missing object."""
    ids = list(names)
    output = repository.run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in ids).encode())
    contents: dict[str, bytes | None] = {}
    start = 0
    for name in ids:
        end = output.index(b"\n", start)
        facts = output[start:end].split()
        start = end + 1
        if facts[-1] == _MISSING:
            contents[name] = None
            continue
        size = int(facts[-1])
        contents[name] = output[start : start + size]
        start += size + 1
    return contents


def _batches(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    batch: list[str] = []
    batch_bytes = 0
    for sha, size in sizes.items():
        if batch and batch_bytes + size > _BATCH_BYTES:
            yield batch
            batch, batch_bytes = [], 0
        batch.append(sha)
        batch_bytes += size
    if batch:
        yield batch


_WITH_CONTENT: Final = re.compile(rb"(?:[0-9a-f]{40,64} )?(?P<kind>[a-z]+) (?P<size>[0-9]+)")
"""The line of `git cat-file --batch --follow-symlinks` before an object, or before a link without a target."""


def read_files_at(git: Git, commit: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of the files that a commit has, by path.

    Raises:
        GitError: The commit cannot be read.
    """
    one_line_paths = [path for path in paths if "\n" not in path]
    names = "".join(f"{commit}:{path}\n" for path in one_line_paths).encode()
    rest = git.run("cat-file", "--batch", "--follow-symlinks", stdin=names)
    contents: dict[str, bytes] = {}
    for path in one_line_paths:
        header, _, rest = rest.partition(b"\n")
        match = _WITH_CONTENT.fullmatch(header)
        if match is None:  # the file is missing
            continue
        size = int(match["size"])
        if match["kind"] == b"blob":
            contents[path] = rest[:size]
        rest = rest[size + 1 :]
    return contents
