"""Find a worktree's paths outside of git's trees: ignored files up to a limit, and names that git refuses."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final

from septet.git.engine.engine import Git
from septet.git.vault.facts import EntryKind, Outside, Record
from septet.git.vault.survey import OVER_LIMIT, Figures, Survey, above, blocks, disk_usage, join, pipes_in

LONGEST_PATH_BYTES: Final = 4000
"""The longest path that is given to git, because the system would not open longer ones."""

_IGNORE_RULES: Final = b".gitignore"
_UNSEEN_BY_HFS: Final = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
"""The code points that HFS+ and `git fsck` ignore in a name."""
_GIT_FOLDER: Final = re.compile(r"(?:.*\\)?(?:\.git|git~1)[. ]*(?:[:\\].*)?\Z", re.DOTALL)
"""The pattern of `.git` and of spellings that NTFS takes for it."""


@dataclass(slots=True)
class Sorting:
    """The paths outside of git's trees, and the ignored ones that the snapshot leaves out."""

    outside: dict[bytes, EntryKind] = field(default_factory=dict)
    """The paths, each `IGNORED` or `REFUSED`; a folder stands for all below it, except refused names."""
    within: set[bytes] = field(default_factory=set)
    """The folders that are, or are below, a folder outside of git's trees."""
    left_out: dict[bytes, int] = field(default_factory=dict)
    """The ignored paths over the limit, with their bytes on disk as far as counted."""
    resorted: set[bytes] = field(default_factory=set)
    """The folders with a name whose kind differs from that in the last snapshot."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A worktree's present state, and its records from the last snapshot."""

    survey: Survey
    records: Mapping[bytes, Record]
    fresh: Mapping[bytes, dict[bytes, Figures]]
    """For each folder that differs from `records`: the names in the folder, each with its `lstat` numbers."""
    tracked: Container[bytes]
    """The files and folders of the base commit; empty if `records` has them already."""


def sort(scene: Scene, vault: Git, limit_bytes: int) -> Sorting:
    """Return the paths that git ignores or refuses, and the ignored ones that the snapshot leaves out.

    Only `.gitignore` files decide what git ignores. All ignored files together may take `limit_bytes` on disk. The
    smallest are taken first, so an `.env` is in the snapshot even if `node_modules` is not.
    """
    sorting = Sorting()
    candidates = _find_candidates(scene, sorting)
    unknown = _without_waiting(scene, candidates)
    _take_ignored(scene, sorting, candidates, _ask(vault, unknown))
    _apply_limit(scene, sorting, limit_bytes)
    return sorting


def _without_waiting(scene: Scene, paths: list[bytes]) -> list[bytes]:
    """Return `paths` without those in folders whose `.gitignore` is a named pipe, at which git would wait."""
    looks = scene.survey.looks if paths else {}
    ruled = {path: look for path, look in looks.items() if _IGNORE_RULES in look.names}
    silent = {path for path, look in ruled.items() if _IGNORE_RULES in pipes_in(look)}
    return [path for path in paths if silent.isdisjoint((*above(path), b""))] if silent else paths


def is_refused(name: bytes) -> bool:
    """Return whether git refuses a name in trees, on at least one operating system."""
    return _GIT_FOLDER.match(name.decode(errors="ignore").translate(_UNSEEN_BY_HFS).lower()) is not None


def _find_candidates(scene: Scene, sorting: Sorting) -> list[bytes]:
    """Add to `sorting` the paths known as ignored or refused; return those that git must check, parents first."""
    candidates: list[bytes] = []
    rules_changed = any(_rules_differ(scene, path) for path in scene.fresh)
    for path in scene.survey.looks:
        inside = bool(path) and (path in sorting.outside or path.rpartition(b"/")[0] in sorting.within)
        if inside:
            sorting.within.add(path)
        record = scene.records.get(path)
        if path not in scene.fresh and record is not None and not rules_changed:
            sorting.outside.update((join(path, item.name), item.entry.kind) for item in record.outside)
            continue
        old = record.entries() if record is not None else {}
        for name in scene.fresh.get(path, old):
            full = join(path, name)
            kind = old[name].kind if name in old else None
            if is_refused(name):
                sorting.outside[full] = EntryKind.REFUSED
            elif inside or kind is EntryKind.TRACKED or full in scene.tracked:
                continue
            elif rules_changed or kind is None:
                candidates.append(full)
            elif kind is EntryKind.IGNORED:
                sorting.outside[full] = kind
    return candidates


def _rules_differ(scene: Scene, path: bytes) -> bool:
    """Return whether a folder's `.gitignore` was added, deleted or changed."""
    record = scene.records.get(path)
    before = record.look.entries().get(_IGNORE_RULES) if record is not None else None
    return scene.fresh[path].get(_IGNORE_RULES) != before


def _ask(vault: Git, paths: list[bytes]) -> set[bytes]:
    """Return which paths git ignores; empty if git fails."""
    stdin = b"".join(b"./%s\0" % path for path in paths if len(path) < LONGEST_PATH_BYTES)
    if not stdin:
        return set()
    # check-ignore refuses the engine's literal pathspecs, and reads paths that begin with ./ literally.
    question = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin", "--no-index")
    answer = vault.try_run(*question, stdin=stdin, core__excludesFile="/dev/null")
    return {path.removeprefix(b"./") for path in answer.stdout.split(b"\0")}


def _take_ignored(scene: Scene, sorting: Sorting, candidates: list[bytes], ignored_paths: set[bytes]) -> None:
    """Add the ignored candidates to `sorting`; an ignored folder stands for everything below it."""
    for full in candidates:
        folder, _, name = full.rpartition(b"/")
        is_root = full in ignored_paths and folder not in sorting.within
        if is_root:
            sorting.outside[full] = EntryKind.IGNORED
        if is_root or folder in sorting.within:
            sorting.within.update({full} & scene.survey.looks.keys())
        record = scene.records.get(folder)
        old = record.entries().get(name) if record is not None else None
        if old is not None and (old.kind is EntryKind.IGNORED) != is_root:
            sorting.resorted.add(folder)


def _apply_limit(scene: Scene, sorting: Sorting, limit_bytes: int) -> None:
    """Leave out the largest ignored paths until the others are within the limit."""
    roots = [path for path, kind in sorting.outside.items() if kind is EntryKind.IGNORED]
    if not roots:
        return
    totals = _folder_totals(scene, sorting)
    usages = {path: usage for path in roots if (usage := _usage(scene, path, totals)) is not None}
    used_bytes = 0
    for path in sorted(usages, key=lambda path: (usages[path], path)):
        if used_bytes + usages[path] > limit_bytes:
            sorting.left_out[path] = usages[path]
        else:
            used_bytes += usages[path]
    sorting.left_out.update({path: limit_bytes for path in roots if scene.survey.closed.get(path) == OVER_LIMIT})
    for path in roots:
        item = _record_of(scene, path)
        if item is not None and bool(item.entry.sha) == (path in sorting.left_out):
            sorting.resorted.add(path.rpartition(b"/")[0])


def _folder_totals(scene: Scene, sorting: Sorting) -> dict[bytes, int]:
    """Return how many bytes each folder outside of git's trees takes on disk, with everything below it."""
    totals: dict[bytes, int] = {}
    for path in reversed(scene.survey.looks):
        if path in sorting.within:
            own = disk_usage(scene.fresh[path]) if path in scene.fresh else scene.records[path].usage
            totals[path] = totals.get(path, 0) + own
            folder = path.rpartition(b"/")[0]
            totals[folder] = totals.get(folder, 0) + totals[path]
    return totals


def _usage(scene: Scene, path: bytes, totals: Mapping[bytes, int]) -> int | None:
    """Return how many bytes an ignored path takes on disk; `None` for a folder that could not be read."""
    if path in totals:
        return totals[path]
    if path in scene.survey.closed:
        return None
    folder, _, name = path.rpartition(b"/")
    if folder in scene.fresh:
        return blocks(scene.fresh[folder][name].size)
    item = _record_of(scene, path)
    return item.usage if item is not None else None


def _record_of(scene: Scene, path: bytes) -> Outside | None:
    """Return the last snapshot's record of a path outside of git's trees; `None` if there is none."""
    folder, _, name = path.rpartition(b"/")
    record = scene.records.get(folder)
    return next((item for item in record.outside if item.name == name), None) if record is not None else None
