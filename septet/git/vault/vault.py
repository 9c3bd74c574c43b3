"""The vaults, one for each repository: bare repositories with snapshots, out of any agent's reach."""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from septet.errors import GitError, NotFoundError, SnapshotError
from septet.git.engine.engine import Git, clear_unguarded_locks, guard_of, share_guard
from septet.git.engine.objects import read_objects
from septet.git.engine.packs import has_many_packs, join_packs
from septet.git.engine.place import Place, vault_lock
from septet.git.vault.facts import Snapshot
from septet.system.durable import fsync_folder, hold_lock, write_durably

_REFS: Final = "refs/septet/"
_CONFIG: Final = """\
[core]
	fsync = committed,loose-object,reference
	fsyncMethod = batch
	hooksPath = /dev/null
	logAllRefUpdates = false
[gc]
	auto = 0
[maintenance]
	auto = false
[pack]
	useSparse = false
"""
# useSparse: a snapshot holds the files of the base commit in another folder, and a push must find them there.
_RAW_ATTRIBUTES: Final = b"* -text -filter -ident -working-tree-encoding -eol\n"
"""The attributes by which no git command in the vault converts a file's bytes."""
_WRITTEN_LAST: Final = Path("info") / "attributes"
_SNAPSHOT_REF: Final = re.compile(rf"{_REFS}[^/]+/\d+-(?:base|checkpoint|rescue)")


def prepare(place: Place) -> None:
    """Create the vault of the work order's repository if needed, and the work order's folder in it.

    Repeated and concurrent calls are safe. The vault borrows the mirror's objects.

    Raises:
        GitError: git could not create the vault, or a living process holds a lock of the vault.
    """
    with hold_lock(vault_lock(place.vault)):
        clear_unguarded_locks(place.vault)
        if not (place.vault / _WRITTEN_LAST).exists():
            _create(place)
        mirror_objects = f"{place.mirror / 'objects'}\n".encode(errors="surrogateescape")
        alternates = place.vault / "objects" / "info" / "alternates"
        if not alternates.exists() or alternates.read_bytes() != mirror_objects:
            write_durably(alternates, mirror_objects)
        if has_many_packs(place.vault):
            with suppress(GitError):  # the janitor joins them too, and reports the reason
                join_packs(vault_at(place))
    place.records.mkdir(mode=0o700, parents=True, exist_ok=True)


def vault_at(place: Place) -> Git:
    """Return the vault as a repository, without a worktree."""
    return Git(place.vault, env=place.env, guard=guard_of(place.vault))


def vaults_in(folder: Path, env: Mapping[str, str]) -> list[Git]:
    """Return the vaults in a folder, except those whose creation did not finish."""
    whole = (path for path in sorted(folder.glob("*.git")) if (path / _WRITTEN_LAST).exists())
    return [Git(path, env=env, guard=guard_of(path)) for path in whole]


def next_name(place: Place, kind: str, last: str | None, others: Iterable[str] = ()) -> str:
    """Return the name for the work order's next snapshot. The caller holds the lock.

    Args:
        last: The name of the last snapshot; `None` if it is unknown, so that git must list the refs.
        others: More names that are already used.
    """
    known = [last] if last else _refs(vault_at(place), f"{ref_of(place.order_id)}/")
    names = (*_names(place.vault / ref_of(place.order_id)), *known, *others)
    return f"{place.order_id}/{max(map(_number, names), default=-1) + 1:04d}-{kind}"


def publish(place: Place, name: str, commit: str) -> None:
    """Create the ref of a snapshot, and sync it to disk. The caller holds the lock."""
    path = place.vault / ref_of(name)
    with share_guard(guard_of(place.vault)):  # before it gets its name, the file is named like git's lock files
        if not path.parent.exists():
            path.parent.mkdir(exist_ok=True)
            fsync_folder(path.parent.parent)
        write_durably(path, f"{commit}\n".encode())


def points_to(place: Place, name: str) -> str:
    """Return a snapshot's commit without starting git; empty if its ref is missing or packed."""
    return _loose(place.vault, ref_of(name))


def ref_of(name: str) -> str:
    """Return the ref of a snapshot, with dots encoded, because git refuses some names with dots."""
    return _REFS + name.replace(".", "%2E")


def find(vault: Git, name: str) -> Snapshot:
    """Return the snapshot with a name such as `<work order>/<number>-<kind>`.

    Raises:
        NotFoundError: The vault has no snapshot of that name.
        SnapshotError: The commit is missing, or is not a snapshot.
    """
    return _read_snapshots(vault, name)[0]


def list_snapshots(vault: Git, order_id: str | None = None) -> list[Snapshot]:
    """Return a vault's snapshots, of all work orders or of one, sorted by work order and age.

    A snapshot without its commit is skipped.
    """
    refs = _refs(vault, _REFS if order_id is None else f"{ref_of(order_id)}/")
    contents = read_objects(vault, refs.values()) if refs else {}
    objects = ((ref, commit, contents[commit]) for ref, commit in refs.items())
    return [_parse(ref, commit, content) for ref, commit, content in objects if content is not None]


def owners(vault: Git) -> list[str]:
    """Return the ids of the work orders and lanes that have snapshots in a vault."""
    return list(dict.fromkeys(_name_of(ref).rpartition("/")[0] for ref in _refs(vault, _REFS)))


def names_of_kind(place: Place, kind: str) -> list[str]:
    """Return the names of a work order's snapshots of one kind, oldest first, without starting git.

    If a person has packed the refs, names are missing.
    """
    names = [name for name in _names(place.vault / ref_of(place.order_id)) if name.endswith(f"-{kind}")]
    return [f"{place.order_id}/{name}" for name in sorted(names, key=_number)]


def first_and_last(vault: Git, order_id: str) -> tuple[Snapshot, Snapshot] | None:
    """Return a work order's oldest and latest snapshot; `None` if it has none.

    This reads only these two, because a lane can have thousands of snapshots.
    """
    packed = (vault.git_dir / "packed-refs").exists()
    names = sorted(_names(vault.git_dir / ref_of(order_id)), key=_number) if not packed else []
    try:
        if names:
            ends = _read_snapshots(vault, f"{order_id}/{names[0]}", f"{order_id}/{names[-1]}")
            return ends[0], ends[-1]
    except (NotFoundError, SnapshotError):  # a person has removed it, or its commit is missing
        pass
    snapshots = list_snapshots(vault, order_id)
    return (snapshots[0], snapshots[-1]) if snapshots else None


def verify(vault: Git, snapshot: Snapshot) -> None:
    """Raise unless a snapshot's ref is at its commit and no object is missing.

    Raises:
        SnapshotError: The snapshot cannot be restored.
    """
    remedy = "Nothing was removed. Take another snapshot once the vault and the mirror are whole again."
    try:
        commit = vault.text("rev-parse", "--verify", "--quiet", f"{ref_of(snapshot.name)}^{{commit}}")
        vault.run("rev-list", "--objects", "--quiet", snapshot.commit)
    except GitError as error:
        message = f"Snapshot {snapshot.name} is not whole: {error.message}"
        raise SnapshotError(message, remedy=remedy) from error
    if commit != snapshot.commit:
        message = f"Snapshot {snapshot.name} is {commit[:12]}, where {snapshot.commit[:12]} was taken."
        raise SnapshotError(message, remedy=remedy)


def _create(place: Place) -> None:
    """Create the vault, also after an earlier attempt that did not finish."""
    place.vault.mkdir(mode=0o700, exist_ok=True)
    Git(place.vault, env=place.env).init("--bare")
    for folder in ("info", "refs/septet", "objects/info"):
        (place.vault / folder).mkdir(parents=True, exist_ok=True)
    config = (place.vault / "config").read_bytes().partition(_CONFIG.encode())[0]
    write_durably(place.vault / "config", config + _CONFIG.encode())
    write_durably(place.vault / _WRITTEN_LAST, _RAW_ATTRIBUTES)
    fsync_folder(place.vault.parent)


def _read_snapshots(vault: Git, *names: str) -> list[Snapshot]:
    """Return snapshots by name, like `find`, with one git process."""
    commits = {name: _commit(vault, name) for name in names}
    contents = read_objects(vault, commits.values())
    snapshots = []
    for name, commit in commits.items():
        content = contents[commit]
        if content is None:
            raise SnapshotError(f"Snapshot {name} is not whole: {vault.git_dir} has no object {commit}.")
        snapshots.append(_parse(ref_of(name), commit, content))
    return snapshots


def _commit(vault: Git, name: str) -> str:
    ref = ref_of(name)
    commit = _loose(vault.git_dir, ref) or _refs(vault, ref).get(ref)
    if commit is None:
        message = f"There is no snapshot {name} in {vault.git_dir}."
        raise NotFoundError(message, remedy="`septet rescue list` shows what there is.")
    return commit


def _loose(vault: Path, ref: str) -> str:
    """Return the commit of a snapshot's ref from its file; empty if there is no such file."""
    try:
        return (vault / ref).read_text().strip() if _SNAPSHOT_REF.fullmatch(ref) else ""
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _names(folder: Path) -> list[str]:
    """Return the last part of each snapshot's name, such as `0003-rescue`, in a folder of ref files."""
    try:
        with os.scandir(folder) as entries:
            return [each.name for each in entries if each.name[0].isdigit()]
    except FileNotFoundError:
        return []


def _number(name: str) -> int:
    return int(name.rpartition("/")[2].partition("-")[0])


def _refs(vault: Git, pattern: str) -> dict[str, str]:
    """Return each ref's commit id, sorted by work order and age; the vault may lack the commit."""
    lines = vault.run("for-each-ref", "--format=%(refname) %(objectname)", pattern).decode().splitlines()
    refs = dict(line.split(" ") for line in lines)
    snapshots = sorted(
        filter(_SNAPSHOT_REF.fullmatch, refs), key=lambda ref: (ref.rpartition("/")[0], _number(ref))
    )
    return {ref: refs[ref] for ref in snapshots}


def _name_of(ref: str) -> str:
    """Return the name of the snapshot to which a ref belongs."""
    return ref.removeprefix(_REFS).replace("%2E", ".")


def _parse(ref: str, commit: str, content: bytes) -> Snapshot:
    """Return the snapshot from its ref, its commit's id and the commit's content.

    Raises:
        SnapshotError: The commit is not a snapshot.
    """
    head, _, message = content.partition(b"\n\n")
    try:
        facts = msgspec.json.decode(message.partition(b"\n\n")[2], type=Snapshot)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"{ref} is not a snapshot: {error}.") from error
    tree = head.partition(b"\n")[0].removeprefix(b"tree ").decode()
    return msgspec.structs.replace(facts, name=_name_of(ref), commit=commit, content=tree)
