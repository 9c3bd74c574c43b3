"""Read many objects of a repository with few processes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from septet.errors import SnapshotError
from septet.git.engine import Git

_BATCH_BYTES: Final = 32 << 20
"""What is held in memory at a time; a larger object is read alone."""


def read_blobs(repository: Git, sizes: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    """Give the id and content of each blob.

    Args:
        repository: Where they are.
        sizes: Id → size in bytes.

    Raises:
        SnapshotError: One is missing.
    """
    for batch in _batches(sizes):
        output = memoryview(repository.run("cat-file", "--batch", stdin="\n".join([*batch, ""]).encode()))
        start = 0
        for sha in batch:
            end = start + len(f"{sha} blob {sizes[sha]}\n")
            if output[start:end] != f"{sha} blob {sizes[sha]}\n".encode():
                raise SnapshotError(f"Object {sha} is missing from {repository.git_dir}.")
            yield sha, bytes(output[end : end + sizes[sha]])
            start = end + sizes[sha] + 1


def _batches(sizes: Mapping[str, int]) -> Iterable[list[str]]:
    batch: list[str] = []
    held = 0
    for sha, size in sizes.items():
        if batch and held + size > _BATCH_BYTES:
            yield batch
            batch, held = [], 0
        batch.append(sha)
        held += size
    if batch:
        yield batch
