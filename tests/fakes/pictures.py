"""The content of a folder, for comparison."""

import os
import stat
from pathlib import Path

Picture = dict[bytes, tuple[int, int, bytes]]
"""Path → type, permission bits, content of a file or target of a link."""

BORROWED = b".git/objects/info/alternates"


def picture(folder: Path) -> Picture:
    found: Picture = {b".": _one(os.fsencode(folder))}
    for root, folders, files in os.walk(os.fsencode(folder)):
        for name in (*folders, *files):
            path = os.path.join(root, name)
            found[os.path.relpath(path, os.fsencode(folder))] = _one(path)
    return found


def restored_picture(folder: Path, like: Picture) -> Picture:
    """Return the content of a restored folder, without the mirror's objects that the restore copied."""
    own = {
        path: item
        for path, item in picture(folder).items()
        if path in like or not path.startswith(b".git/objects/")
    }
    return own | ({BORROWED: like[BORROWED]} if BORROWED in like else {})


def _one(path: bytes) -> tuple[int, int, bytes]:
    facts = os.lstat(path)
    kind, bits = stat.S_IFMT(facts.st_mode), stat.S_IMODE(facts.st_mode)
    if kind == stat.S_IFLNK:
        return kind, 0, os.readlink(path)
    if kind == stat.S_IFREG:
        return kind, bits, Path(os.fsdecode(path)).read_bytes()
    return kind, bits, b""
