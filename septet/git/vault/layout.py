"""Write and read a workspace as the tree of a snapshot's commit.

`tree/` has the worktree's tracked and untracked files as raw bytes. `state` is the agent's whole `.git`, and
`index` is the agent's index once more. `extra/` has what git keeps out of trees: ignored files, the `.git` of
nested repositories, names that git refuses. `manifest.json` lists the paths of `extra/`, the permission bits that
git does not store, and what was left out. An empty folder is an empty tree. Equal content of several snapshots is
stored once, because everything is a git object.
"""

import json
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

from septet.errors import GitError, SnapshotError
from septet.git.engine.engine import Git
from septet.git.vault.facts import FILE, FOLDER, EntryKind, LedgerEntry, Record, tree_content
from septet.git.vault.pack import Pack
from septet.git.vault.survey import GIT_FOLDER, join

_MISSING: Final = b"BAD"
"""What `git ls-tree -l` prints as the size of a missing blob."""
_TREE, _STATE, _INDEX, _EXTRA, _MANIFEST = b"tree", b"state", b"index", b"extra", b"manifest.json"
_ROOT: Final = b""


@dataclass(frozen=True, slots=True)
class _Manifest:
    """The content of `manifest.json`; in its paths, a byte that is not UTF-8 is a lone surrogate."""

    version: int
    usual: dict[str, str]
    """By git's mode, the permission bits of paths that are not in `modes`; both octal."""
    extra: list[str]
    """The paths of the entries of `extra/`."""
    modes: dict[str, str]
    left_out: dict[str, str]
    """For each path that the snapshot does not contain, the reason."""


class Item(NamedTuple):
    """A file, link or folder of a workspace, as a snapshot has it."""

    mode: int
    """git's mode."""
    sha: str
    bits: int
    """The permission bits."""
    size: int
    """The size in bytes; 0 for a folder."""
    in_tree: bool = True
    """Whether the item is in the snapshot's `tree/`, and so neither ignored nor in a `.git`."""


def compose(pack: Pack, records: Mapping[bytes, Record], usual: Mapping[int, int], root_mode: int) -> bytes:
    """Store the manifest and the tree of a snapshot's commit, and return the tree's id.

    Args:
        records: By path, the record of every folder; the recorded objects are already in the pack or the vault.
        usual: For each of git's modes, its usual permission bits; only other bits are recorded by path.
    """
    outside = {
        join(path, item.name): item.entry
        for path, record in records.items()
        for item in record.outside
        if item.entry.sha
    }
    modes = {join(path, name): bits for path, record in records.items() for name, bits in record.odd}
    modes[_ROOT] = stat.S_IMODE(root_mode)
    missing = {join(path, item.name): item.reason for path, record in records.items() for item in record.missing}
    state = outside.pop(GIT_FOLDER, None)
    extra = sorted(outside)
    manifest = _Manifest(
        version=1,
        usual={f"{mode:o}": f"{bits:o}" for mode, bits in sorted(usual.items())},
        extra=[_text(path) for path in extra],
        modes={_text(path): f"{bits:o}" for path, bits in sorted(modes.items())},
        left_out={_text(path): reason for path, reason in sorted(missing.items())},
    )
    parts = {
        _TREE: _folder(records[_ROOT].tree),
        _MANIFEST: _file(pack.add("blob", json.dumps(asdict(manifest), indent=1).encode() + b"\n")),
    }
    if extra:
        numbered = {b"%06d" % number: outside[path] for number, path in enumerate(extra)}
        parts[_EXTRA] = _folder(pack.add("tree", tree_content(numbered)))
    if state is not None:
        parts[_STATE] = state
    if index := index_of(records):
        parts[_INDEX] = _file(index)
    return pack.add("tree", tree_content(parts))


def index_of(records: Mapping[bytes, Record]) -> bytes:
    """Return the blob id of the agent's index; empty if there is none."""
    entry = records[GIT_FOLDER].entries().get(b"index") if GIT_FOLDER in records else None
    return entry.sha if entry is not None and entry.mode == FILE else b""


def read(vault: Git, commit: str) -> dict[bytes, Item]:
    """Return a snapshot's items by path, each folder before its content; the root's path is `b""`.

    Raises:
        SnapshotError: The commit is not a snapshot.
        GitError: An object is missing.
    """
    manifest = _read_manifest(vault, commit)
    homes = {_TREE: _ROOT, _STATE: GIT_FOLDER}
    homes |= {b"%s/%06d" % (_EXTRA, number): _bytes(path) for number, path in enumerate(manifest.extra)}
    usual = {int(mode, 8): int(bits, 8) for mode, bits in manifest.usual.items()}
    modes = {_bytes(path): int(bits, 8) for path, bits in manifest.modes.items()}
    items: dict[bytes, Item] = {}
    for line in vault.run("ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit).split(b"\0")[:-1]:
        facts, _, path_there = line.partition(b"\t")
        path = _home(path_there, homes)
        if path is not None:
            mode, _, sha, size = facts.split()
            if size == _MISSING:
                raise SnapshotError(f"Object {sha.decode()} is missing from {vault.git_dir}.")
            number = int(mode, 8)
            bits = modes.get(path, usual.get(number, 0o777))
            items[path] = Item(
                number, sha.decode(), bits, 0 if number == FOLDER else int(size), path_there.startswith(_TREE)
            )
    return dict(sorted(items.items()))


def read_left_out(vault: Git, commit: str) -> dict[bytes, str]:
    """Return the paths that a snapshot does not contain, each with the reason.

    Raises:
        SnapshotError: The commit is not a snapshot.
    """
    return {_bytes(path): reason for path, reason in _read_manifest(vault, commit).left_out.items()}


def _read_manifest(vault: Git, commit: str) -> "_Manifest":
    try:
        return _Manifest(**json.loads(vault.run("cat-file", "blob", f"{commit}:{_MANIFEST.decode()}")))
    except (ValueError, TypeError, GitError) as error:
        message = f"Commit {commit} of {vault.git_dir} has no manifest of a snapshot: {error}."
        raise SnapshotError(message) from error


def _home(path: bytes, homes: Mapping[bytes, bytes]) -> bytes | None:
    """Map a path in a snapshot's commit to the workspace; `None` if the path begins with no key of `homes`."""
    parts = path.split(b"/", 2)
    depth = 2 if parts[0] == _EXTRA else 1
    home = homes.get(b"/".join(parts[:depth]))
    rest = path.split(b"/", depth)[depth:]
    return None if home is None else join(home, rest[0]) if rest else home


def _folder(sha: bytes) -> LedgerEntry:
    return LedgerEntry(FOLDER, sha, EntryKind.TRACKED)


def _file(sha: bytes) -> LedgerEntry:
    return LedgerEntry(FILE, sha, EntryKind.TRACKED)


def _text(path: bytes) -> str:
    return path.decode(errors="surrogateescape")


def _bytes(path: str) -> bytes:
    return path.encode(errors="surrogateescape")
