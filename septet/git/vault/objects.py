"""Read many objects of a repository with few processes."""

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
