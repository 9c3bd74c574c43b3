"""Write `rescue.patch`: the changes since the base commit, in a form for `git apply`.

A snapshot has raw bytes; a patch needs the bytes that would be committed, with converted line ends and encodings.
Therefore the changed files are written to a folder that no agent can reach, and staged there.
"""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from septet.errors import GitError, SnapshotError
from septet.git.engine.engine import Git
from septet.git.engine.objects import read_blobs
from septet.git.engine.place import Place
from septet.git.snapshots.lay import lay
from septet.git.vault.facts import FOLDER, Snapshot
from septet.git.vault.layout import Item, read
from septet.git.vault.outside import LONGEST_PATH_BYTES
from septet.git.vault.survey import OPEN_FOLDER, above
from septet.git.vault.vault import vault_at
from septet.system.durable import close_after, fsync

_OPEN: Final = Item(FOLDER, "", 0o700, 0)
_DIFF: Final = ("diff-index", "--cached", "--binary", "--find-renames", "--no-ext-diff", "--no-textconv")


def write_patch(place: Place, snapshot: Snapshot, to: Path) -> Path | None:
    """Write the difference between base commit and snapshot to a file, and return its path; `None` if equal.

    The patch has all changes that a commit could have, committed or not. Ignored files, submodules and paths that
    are too long to open are only in the snapshot. No filter program runs.

    Raises:
        SnapshotError: The patch could not be written. The snapshot is unchanged.
    """
    new = to.with_name(f"{to.name}.new")
    try:
        with tempfile.TemporaryDirectory(dir=place.records, prefix="patch-") as folder:
            _Patch(place, snapshot, Path(folder)).write(new)
        if not new.stat().st_size:
            new.unlink()
            return None
        with new.open("rb") as file:
            fsync(file.fileno())
        return new.replace(to)
    except (OSError, GitError) as error:
        message = f"The patch of snapshot {snapshot.name} could not be written to {to}: {error}."
        raise SnapshotError(message, remedy="`septet rescue restore` gives the files themselves.") from error


@dataclass(frozen=True, slots=True)
class _Patch:
    """Writes one patch with the help of a separate folder for the changed files."""

    place: Place
    snapshot: Snapshot
    folder: Path

    def write(self, to: Path) -> None:
        """Stage the snapshot's changes on the base commit, and write the difference to `to`."""
        items = read(vault_at(self.place), self.snapshot.commit)
        removals, others = self._changes()
        self._lay_out({path: items[path] for path in others})
        names = b"".join(b"%s\0" % path for path in (*removals, *others))
        try:
            git = self._index_with(self.place.mirror, names)
        except GitError:
            # A file does not have the encoding of its attribute: stage raw bytes, as in the vault.
            git = self._index_with(self.place.vault, names)
        git.run(*_DIFF, f"--output={to}", self.place.base_sha)

    def _changes(self) -> tuple[list[bytes], list[bytes]]:
        """Return the deleted paths, and the new or changed paths."""
        vault = vault_at(self.place)
        trees = (f"{self.place.base_sha}^{{tree}}", self.snapshot.tree)
        fields = vault.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", *trees).split(b"\0")
        rows = [(facts.split(), path) for facts, path in zip(fields[::2], fields[1::2], strict=False)]
        modules = {path for (old, new, *_), path in rows if old == b":160000" and new == b"000000"}
        usable = [
            (status, path)
            for (*_, status), path in rows
            if modules.isdisjoint((path, *above(path))) and len(path) < LONGEST_PATH_BYTES
        ]
        removals = [path for status, path in usable if status == b"D"]
        return removals, [path for status, path in usable if status != b"D"]

    def _lay_out(self, items: Mapping[bytes, Item]) -> None:
        """Write the changed files and links to the separate folder."""
        (self.folder / "files").mkdir()
        folders = {b"": _OPEN} | {folder: _OPEN for path in items for folder in above(path)}
        files = {path: item._replace(bits=item.mode & 0o777) for path, item in items.items()}
        with close_after(os.open(self.folder / "files", OPEN_FOLDER)) as root:
            want = dict(sorted((folders | files).items()))
            lay(root, {b"": _OPEN}, want, partial(read_blobs, vault_at(self.place)))

    def _index_with(self, git_dir: Path, names: bytes) -> Git:
        """Return a repository whose index is the base commit with the changed versions of `names`."""
        objects = self.folder / "objects"
        objects.mkdir(exist_ok=True)
        git = Git(git_dir, self.folder / "files", self.place.env, index=self.folder / "index").with_env(
            GIT_OBJECT_DIRECTORY=str(objects), GIT_ALTERNATE_OBJECT_DIRECTORIES=str(self.place.mirror / "objects")
        )
        git.run("read-tree", self.place.base_sha)
        add = ("update-index", "--add", "--remove", "-z", "--stdin")
        git.run(*add, stdin=names, core__safecrlf="false", core__ignoreCase="false", core__protectNTFS="false")
        return git
