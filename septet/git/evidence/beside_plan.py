"""Restore a workspace to its state before the first agent, except the plan.

What a snapshot can contain is saved in a rescue. Files that no snapshot contains, such as ignored files over their
limit, move out of the worktree and stay on disk as long as the rescue. Such a file from
the set-up moves only if its change time, which no guest can set, is after the start of the first agent.
"""

import os
import stat
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from septet.errors import EvidenceError, SnapshotError, WorkspaceError
from septet.git.engine.place import Place
from septet.git.snapshots.destroy import put_index_back, return_to
from septet.git.snapshots.take import take
from septet.git.snapshots.unkept import aside_of, set_aside
from septet.git.vault.facts import LINK, Snapshot, SnapshotOptions
from septet.git.vault.layout import Item, read, read_left_out
from septet.git.vault.survey import GIT_FOLDER, MAX_DEPTH, OPEN_FOLDER, above, join, open_below, parent
from septet.git.vault.vault import vault_at
from septet.git.workspace.plan import plan_file, plan_items
from septet.git.worktree.view import shown_path
from septet.system.durable import close_after

_NO_WORK: Final = frozenset({b".git/index", b".git/config"})
"""The index and git's settings, which are restored but do not count as work."""
_INDEX_THERE: Final = frozenset({b"state", b"state/index", b"index"})
"""The paths under which a snapshot's commit has the index."""
_USABLE: Final = stat.S_IRUSR | stat.S_IXUSR


@dataclass(frozen=True)
class BeforeAgents:
    """The recorded facts about a workspace as it was before its first agent."""

    first: Snapshot
    setup: tuple[Snapshot, Snapshot] | None = None
    """The snapshots before and after the set-up on this host, if the workspace was moved here."""
    shares_files: bool = False
    """Whether set-up may have linked files of a shared cache, whose change times change with each new link."""

    @cached_property
    def _since_ns(self) -> int:
        """The earliest possible start of the first agent, in nanoseconds since the epoch."""
        last = self.setup[1] if self.setup is not None else self.first
        return int(datetime.fromisoformat(last.taken_at).timestamp() * 1e9)

    def is_newer(self, facts: os.stat_result) -> bool:
        """Return whether a file may have changed since the first agent started."""
        is_shared = self.shares_files and stat.S_ISREG(facts.st_mode) and facts.st_nlink > 1
        return facts.st_ctime_ns > self._since_ns and not is_shared


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What agents have left in a workspace, except the plan."""

    adding: Mapping[bytes, Item]
    """Files and folders that must stay besides those of the first snapshot."""
    unkept: tuple[bytes, ...]
    """The paths of leftovers that no snapshot contains."""
    paths: tuple[bytes, ...]
    """The sorted paths of all leftovers, without those that git itself rewrites."""

    @property
    def shown_paths(self) -> tuple[str, ...]:
        """The paths for people; all paths in `.git` count as one."""
        names = (path if path.split(b"/")[0] != GIT_FOLDER else GIT_FOLDER for path in self.paths)
        return tuple(dict.fromkeys(map(shown_path, names)))


@dataclass(frozen=True, slots=True)
class PlanAlone:
    """Removes from a workspace everything that agents have left, except the plan."""

    place: Place
    """The workspace, in which no guest works now."""
    current: Snapshot
    """A snapshot of the present workspace."""
    before: BeforeAgents
    path: str

    def keep(
        self, options_of: Callable[[Leftovers, Path | None], SnapshotOptions], *, begun_by: Snapshot | None = None
    ) -> tuple[bool, Snapshot | None]:
        """Remove everything from the workspace that was not there before the first agent, except the plan.

        Returns whether anything changed, and the rescue of the earlier state, if one was needed.

        Args:
            options_of: Returns the options of the rescue. It takes the leftovers, and the folder to which files
                that no snapshot contains were moved, if any.
            begun_by: The rescue of an earlier call that did not end. The half-restored state is saved in a
                checkpoint instead of a second rescue.

        Raises:
            EvidenceError: The plan cannot be kept alone at its path; nothing was changed.
            SnapshotError: No snapshot could be taken first, or the disk failed halfway: repeat the call with the
                same `current`, and the rescue as `begun_by`.
        """
        place, before = self.place, self.before
        vault = vault_at(place)
        unkept_first = read_left_out(vault, before.first.commit) if before.first.left_out else {}
        if before.setup is not None:
            unkept_first |= read_left_out(vault, before.setup[1].commit)
        touched = _touched_in(place, unkept_first, before)
        if not (touched or before.setup or begun_by) and before.first.index:
            plan = b"tree/" + os.fsencode(self.path)
            changed = self._changed_names() - {plan, *above(plan)}
            if changed <= _INDEX_THERE:
                if changed:
                    put_index_back(place, before.first)
                return bool(changed), None
        leftovers = self._find_leftovers(unkept_first, touched)
        if leftovers.unkept and not begun_by:
            set_aside(place, leftovers.unkept)
        options = options_of(leftovers, aside_of(place))
        if begun_by is not None:
            half = take(place, "checkpoint", replace(options, step=None, equal_to=begun_by))
            options = replace(options, equal_to=half or begun_by)
        elif not leftovers.paths:
            options = replace(options, equal_to=self.current)
        rescue = return_to(place, before.first, options, adding=leftovers.adding)
        plan_file(place, self.path)
        return True, rescue

    def _find_leftovers(self, unkept_first: Collection[bytes], touched: Collection[bytes]) -> Leftovers:
        """Return the leftovers. The first snapshot lacks the files `unkept_first`; agents changed `touched`."""
        vault = vault_at(self.place)
        have, first = read(vault, self.current.commit), read(vault, self.before.first.commit)
        adding = self._of_setup()
        adding |= {
            each: item
            for each, item in have.items()
            if each not in first and _is_within(each, unkept_first) and not _is_within(each, touched)
        }
        adding |= self._plan_items(first, have)
        want = {**first, **adding}
        unkept = [each for each in read_left_out(vault, self.current.commit) if each not in unkept_first]
        unkept += [each for each in touched if each not in have]
        differing = {each for each in {*have, *want} if have.get(each) != want.get(each) and each not in _NO_WORK}
        folders = {folder for path in differing for folder in (*above(path), b"")}
        paths = tuple(sorted({*differing - folders, *unkept}))
        return Leftovers(dict(sorted(adding.items())), tuple(sorted(set(unkept))), paths)

    def _changed_names(self) -> set[bytes]:
        """Return the paths that differ between the first and the current snapshot."""
        options = ("-r", "-t", "-z", "--name-only", "--no-renames")
        commits = (self.before.first.commit, self.current.commit)
        return set(vault_at(self.place).run("diff-tree", *options, *commits).split(b"\0")[:-1])

    def _plan_items(self, then: Mapping[bytes, Item], now: Mapping[bytes, Item]) -> dict[bytes, Item]:
        """Return the plan's file and its folders; raise if a link on the plan's path is new."""
        own = os.fsencode(self.path)
        for link in (each for each in (*above(own), own) if each in now and now[each].mode == LINK):
            if then.get(link) != now[link]:
                raise EvidenceError(f"{shown_path(link)} is a new link: write the plan into a plain file.")
        worktree = self.place.worktree
        real = (worktree / self.path).resolve().relative_to(worktree.resolve())
        try:
            return plan_items(self.place, self.before.first, self.current.name, str(real))
        except WorkspaceError as error:
            message = f"{error.message} Write the plan into a plain file of an ordinary folder."
            raise EvidenceError(message) from error

    def _of_setup(self) -> dict[bytes, Item]:
        """Return what set-up changed outside of `.git` after the workspace moved here; empty without a move."""
        if self.before.setup is None:
            return {}
        then, now = (read(vault_at(self.place), snapshot.commit) for snapshot in self.before.setup)
        changed = [path for path, item in now.items() if then.get(path) != item and path]
        made = {each for path in changed if path.split(b"/")[0] != GIT_FOLDER for each in (path, *above(path))}
        return {path: now[path] for path in made}


def _is_within(path: bytes, tops: Collection[bytes]) -> bool:
    return any(each in tops for each in (path, *above(path)))


def _touched_in(place: Place, tops: Collection[bytes], before: BeforeAgents) -> set[bytes]:
    """Return the paths at or below `tops` that were changed since the first agent started."""
    touched: set[bytes] = set()
    with close_after(os.open(place.worktree, OPEN_FOLDER)) as root:
        for top in tops:
            try:
                holder = open_below(root, parent(top))
            except OSError:  # its folder is gone, or a link
                continue
            try:
                with close_after(holder) as folder, suppress(FileNotFoundError):
                    touched |= set(_touched(folder, top, before, 0)[0])
            except OSError as error:
                remedy = "Nothing was removed. Make it readable, then run `septet retry`."
                raise SnapshotError(f"{place.worktree} cannot be checked: {error}.", remedy=remedy) from error
    return touched


def _touched(folder: int, path: bytes, before: BeforeAgents, depth: int) -> tuple[list[bytes], bool]:
    """Return the changed paths of a file or folder, and whether any part is unchanged.

    A folder without an unchanged part counts as one path.
    """
    name = path.rpartition(b"/")[2]
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    is_touched = before.is_newer(facts)
    if not stat.S_ISDIR(facts.st_mode):
        return ([path], False) if is_touched else ([], True)
    if depth > MAX_DEPTH or (facts.st_mode & _USABLE != _USABLE and os.geteuid()):
        return ([path], False) if is_touched else ([], True)
    found, has_untouched = list[bytes](), False
    with close_after(os.open(name, OPEN_FOLDER, dir_fd=folder)) as inner:
        with os.scandir(inner) as entries:
            children = [os.fsencode(entry.name) for entry in entries]
        for child in children:
            below, untouched = _touched(inner, join(path, child), before, depth + 1)
            found += below
            has_untouched = has_untouched or untouched
    if is_touched and not has_untouched:
        return [path], False
    return found, has_untouched or not is_touched
