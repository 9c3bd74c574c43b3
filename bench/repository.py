"""Bare repositories for measurements, with a chosen number of files, the same for the same seed."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from septet.git.engine.engine import Git

_COMMITTER = "Bench <bench@septet.invalid> 1767225600 +0000"
_FILES_IN_A_FOLDER = 50
_LONGEST_FILE_BYTES = 4096


def make_repository(origin: Path, files: int, seed: int, env: Mapping[str, str]) -> Path:
    """Make the bare repository `origin` with one commit of this many files, up to 4 KiB each, and return it."""
    git = Git(origin, env=env)
    origin.parent.mkdir(parents=True, exist_ok=True)
    git.run("init", "--quiet", "--bare", "--initial-branch=main")
    git.run("fast-import", "--quiet", stdin=b"".join(_commit(files, seed)))
    return origin


def _commit(files: int, seed: int) -> Iterator[bytes]:
    chance = random.Random(seed)  # noqa: S311 -- the same content each time is the point
    yield f"commit refs/heads/main\ncommitter {_COMMITTER}\n".encode() + _data(b"Files to measure on")
    for number in range(files):
        path = f"src/part{number // _FILES_IN_A_FOLDER:04}/module{number:05}.txt"
        yield f"M 100644 inline {path}\n".encode()
        yield _data(chance.randbytes(chance.randrange(1, _LONGEST_FILE_BYTES // 2)).hex().encode())


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)
