"""Read many objects of a repository with few processes: by id, or as files of a commit."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from septet.errors import SnapshotError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place

_BATCH_BYTES: Final = 32 << 20
"""The most bytes of objects that are read at once; a larger object is read alone."""
_WITH_CONTENT: Final = re.compile(rb"(?:[0-9a-f]{40,64} )?(?P<kind>[a-z]+) (?P<size>[0-9]+)")
"""What `git cat-file --batch --follow-symlinks` prints before an object, or for a broken link."""


def read_blobs(repository: Git, sizes: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    """Yield the id and the content of each blob; `sizes` has the size of each id in bytes.

    Raises:
        SnapshotError: A blob is missing.
    """
    for batch in _batches(sizes):
        for sha, content in read_objects(repository, batch).items():
            if content is None:
                raise SnapshotError(f"Object {sha} is missing from {repository.git_dir}.")
            yield sha, content


def read_objects(repository: Git, names: Iterable[str]) -> dict[str, bytes | None]:
    """Return the content of each object by its name in `names`; `None` for a missing object."""
    ids = list(names)
    output = repository.run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in ids).encode())
    return {name: content for name, (_, content) in zip(ids, _parts_of(output), strict=True)}


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


def read_files_at(git: Git, commit: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of a commit's files by path; missing files are left out.

    Raises:
        GitError: The commit cannot be read.
    """
    one_line_paths = [path for path in paths if "\n" not in path]
    names = "".join(f"{commit}:{path}\n" for path in one_line_paths).encode()
    parts = _parts_of(git.run("cat-file", "--batch", "--follow-symlinks", stdin=names))
    found = zip(one_line_paths, parts, strict=True)
    return {path: content for path, (kind, content) in found if kind == b"blob" and content is not None}


def _parts_of(output: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield each object's kind and content from `git cat-file --batch`; a missing object's content is `None`."""
    start = 0
    while start < len(output):
        end = output.index(b"\n", start)
        match = _WITH_CONTENT.fullmatch(output, start, end)
        start = end + 1
        if match is None:
            yield b"", None
            continue
        size = int(match["size"])
        yield match["kind"], output[start : start + size]
        start += size + 1


def read_base_file(place: Place, path: str) -> bytes | None:
    """Return a file's content in the base commit; `None` if the base commit has no such file.

    A symlink is followed inside the repository.

    Raises:
        GitError: The base commit cannot be read.
    """
    return read_base_files(place, (path,)).get(path)


def read_base_files(place: Place, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of the base commit's files by path; missing files are left out.

    A symlink is followed inside the repository.

    Raises:
        GitError: The base commit cannot be read.
    """
    return read_files_at(Git(place.mirror, env=place.env), place.base_sha, paths)


def list_base_folder(place: Place, folder: str) -> tuple[str, ...]:
    """Return the names in a folder of the base commit; empty if the folder is missing.

    Raises:
        GitError: The base commit cannot be read.
    """
    names = Git(place.mirror, env=place.env).run("ls-tree", "--name-only", "-z", place.base_sha, f"{folder}/")
    return tuple(name.decode(errors="replace").rpartition("/")[2] for name in names.split(b"\0")[:-1])
