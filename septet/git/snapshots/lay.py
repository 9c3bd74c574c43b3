"""Write the wanted files, links and folders below a root, in place of the known present content.

Each folder is opened from its parent and no link is followed, so nothing outside of the root changes. Paths that
are not in the known content stay, with their folders.
"""

import errno
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from septet.git.vault.facts import FOLDER, LINK
from septet.git.vault.layout import Item
from septet.git.vault.survey import open_below
from septet.system.durable import close_after

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OWNER_CHANGES: Final = 0o300
_OWNER_ALL: Final = 0o700

Contents = Callable[[Mapping[str, int]], Iterator[tuple[str, bytes]]]
"""Takes the sizes of blobs by id, and yields each blob's id and content."""


def lay(root: int, have: Mapping[bytes, Item], want: Mapping[bytes, Item], contents: Contents) -> None:
    """Change the content of the folder with descriptor `root` from `have` to `want`.

    Args:
        have: The present content, by path; no other path is removed or replaced. Each folder precedes its content.
        want: The wanted content, in the same order, with the root itself as `b""`.

    Raises:
        OSError: Another file is in the way, or the disk failed.
    """
    different = {path for path, item in want.items() if not _same(have.get(path), item)}
    for path in reversed(list(have)):
        if path not in want or path in different:
            _remove(root, path, have[path])
    for path in (path for path in want if path in different and want[path].mode == FOLDER and path):
        with _holder(root, path) as (folder, name):
            os.mkdir(name, _OWNER_ALL, dir_fd=folder)
    _write(root, {path: want[path] for path in want if path in different and want[path].mode != FOLDER}, contents)
    for path in reversed(list(want)):
        item = want[path]
        if item.mode == FOLDER or (path not in different and item.mode != LINK and have[path].bits != item.bits):
            _set_bits(root, path, item)


def _same(have: Item | None, want: Item) -> bool:
    """Return whether an item needs no change; a folder's content does not count."""
    if have is None or have.mode != want.mode:
        return False
    return want.mode == FOLDER or have.sha == want.sha


def _remove(root: int, path: bytes, item: Item) -> None:
    """Delete a file or an empty folder; a folder with content stays."""
    with suppress(FileNotFoundError), _holder(root, path) as (folder, name):
        if item.mode != FOLDER:
            os.unlink(name, dir_fd=folder)
            return
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise


def _write(root: int, items: Mapping[bytes, Item], contents: Contents) -> None:
    """Write new files and links; each content is read once, even for several files."""
    paths: dict[str, list[bytes]] = defaultdict(list)
    for path, item in items.items():
        paths[item.sha].append(path)
    for sha, content in contents({item.sha: item.size for item in items.values()}):
        for path in paths[sha]:
            with _holder(root, path) as (folder, name):
                if items[path].mode == LINK:
                    os.symlink(content, name, dir_fd=folder)
                else:
                    _write_file(folder, name, content, items[path].bits)


def _write_file(folder: int, name: bytes, content: bytes, bits: int) -> None:
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(descriptor, bits)


def _set_bits(root: int, path: bytes, item: Item) -> None:
    parent, _, name = path.rpartition(b"/")
    with close_after(open_below(root, parent)) as folder:
        descriptor = os.open(name or b".", _OLD, dir_fd=folder)
    with close_after(descriptor):
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != item.bits:
            os.fchmod(descriptor, item.bits)


@contextmanager
def _holder(root: int, path: bytes) -> Iterator[tuple[int, bytes]]:
    """Make a path's folder writable; yield the folder's descriptor and the last name of the path."""
    parent, _, name = path.rpartition(b"/")
    with close_after(open_below(root, parent)) as folder:
        mode = os.fstat(folder).st_mode
        if mode & _OWNER_CHANGES != _OWNER_CHANGES:
            os.fchmod(folder, stat.S_IMODE(mode) | _OWNER_ALL)
        yield folder, name
