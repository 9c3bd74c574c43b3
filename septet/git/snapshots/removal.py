"""Delete a folder with its content, of any depth and with any permissions, and follow no links."""

import itertools
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from septet.git.vault.survey import OPEN_FOLDER
from septet.system.durable import close_after

_OWNER_ALL: Final = 0o700


def remove_folder(folder: Path) -> None:
    """Delete a folder with its content.

    Nested folders are first moved up into `folder`, so that a deep folder needs no recursion.

    Raises:
        OSError: A file cannot be removed; the rest may be gone.
    """
    folder.chmod(_OWNER_ALL)
    new_names = (f"{secrets.token_hex(8)}-{number}" for number in itertools.count())
    with close_after(os.open(folder, OPEN_FOLDER)) as root:
        while names := _names(root):
            for name in names:
                _remove_entry(root, name, new_names)
    folder.rmdir()


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _remove_entry(root: int, name: str, new_names: Iterator[str]) -> None:
    """Delete a file or a folder in `root`; the folders in a deleted folder are moved up to `root`."""
    try:
        os.unlink(name, dir_fd=root)
    except (IsADirectoryError, PermissionError):  # the first on Linux, the second on macOS
        with close_after(_open_for_removal(root, name)) as folder:
            with os.scandir(folder) as entries:
                below = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            for child, is_folder in below:
                if is_folder:
                    os.close(_open_for_removal(folder, child))
                    os.rename(child, next(new_names), src_dir_fd=folder, dst_dir_fd=root)
                else:
                    os.unlink(child, dir_fd=folder)
        os.rmdir(name, dir_fd=root)


def _open_for_removal(folder: int, name: str) -> int:
    """Return a descriptor of a folder, even if its mode denies its owner everything."""
    if not os.access(name, os.R_OK | os.W_OK | os.X_OK, dir_fd=folder, follow_symlinks=False):
        os.chmod(name, _OWNER_ALL, dir_fd=folder)
    return os.open(name, OPEN_FOLDER, dir_fd=folder)
