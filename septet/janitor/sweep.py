"""One pass of the janitor: delete workspaces, runs, snapshots and mirrors after their retention times.

The pass reads records of work orders but no worktrees, so large worktrees do not slow it.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from septet.agents.runs.folders import Runs
from septet.agents.runs.homes import Homes
from septet.agents.runs.logins import Logins
from septet.agents.turns.warm import end_warm
from septet.errors import SeptetError
from septet.git.engine.engine import Git
from septet.git.engine.packs import clear_unfinished_packs
from septet.git.engine.place import RECORDS, Place, find_record, mirror_lock, vault_lock
from septet.git.snapshots.destroy import remove_workspace
from septet.git.snapshots.forget import (
    clear_trash,
    drop_forgotten,
    forget_brought,
    forget_chain,
    forget_snapshots,
    has_forgotten,
    remove_closed,
)
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.vault import list_snapshots, owners, vault_at, vaults_in
from septet.git.workspace.mirror import tidy_mirror
from septet.janitor.leftovers import changed_at, folder_names, sweep_leftovers
from septet.janitor.terms import FindOwner, Owner, SweepReport, SweptItem, SweptKind, Terms, is_over
from septet.state import StateDir
from septet.system.durable import hold_lock

_SHOWN: Final = 100
_RUNNING: Final = Owner("running")


@dataclass
class Sweep:
    """One pass of the janitor."""

    state: StateDir
    runs: Runs
    terms: Terms
    env: Mapping[str, str]
    find_owner: FindOwner
    now: datetime
    go_on: Callable[[], bool] = lambda: True
    """A function that returns false if the pass must end, because the worker stops or the pass takes too long."""
    _removals: list[SweptItem] = field(default_factory=list)
    _refusals: list[SweptItem] = field(default_factory=list)
    _forgot: set[Path] = field(default_factory=set)
    """The vaults in which this pass has forgotten snapshots."""
    _kept_count: int = 0

    def run(self) -> SweepReport:
        """Delete everything whose retention time is over; return the report. An error ends only one deletion."""
        note = ""
        with self._refusing("runs", self.state.trash.name):
            clear_trash(self.state.trash)
        for vault in vaults_in(self.state.vaults, self.env):
            for order_id in folder_names(vault.git_dir / RECORDS):
                if not self.go_on():
                    note = "The pass was interrupted; the next one continues."
                    break
                self._order(order_id)
            else:
                self._moved_here(vault)
                self._repository(vault)
            self._room(vault)
        if not note:
            self._runs_alone()
            sweep_leftovers(self.state, self.terms, self.now, self._refusing)
        return SweepReport(
            removed=tuple(self._removals[:_SHOWN]),
            refused=tuple(self._refusals[:_SHOWN]),
            removed_count=len(self._removals),
            refused_count=len(self._refusals),
            kept_count=self._kept_count,
            note=note,
        )

    def _order(self, order_id: str) -> None:
        """Delete the parts of a work order whose retention time is over."""
        with self._refusing("workspace", order_id):
            record = find_record(self.state, order_id)
            if record is None:
                return
            place = record.place(self.state, self.env)
            since = self._quiet_since(place)
            shortest = min(self.terms.workspaces_days, self.terms.runs_days, self.terms.snapshots_days)
            if not is_over(since, shortest, self.now):
                self._kept_count += 1
                return
            owner = self.find_owner(order_id)
            if owner == _RUNNING:
                self._kept_count += 1
                return
            since = max(since, owner.closed_at or since)
            self._workspace(place, since)
            self._runs(order_id, since)
            self._snapshots(place, since)

    def _quiet_since(self, place: Place) -> datetime:
        """Return when this host last opened, ran or saved a work order."""
        records = place.records
        paths = (records, records / "ledger", records / "snapshot.lock", self.state.runs / place.order_id)
        return datetime.fromtimestamp(max(map(changed_at, paths)), UTC)

    def _workspace(self, place: Place, since: datetime) -> None:
        options = SnapshotOptions("its time is over", self.terms.ignored_limit_bytes)
        if not os.path.lexists(place.worktree):
            remove_workspace(place, options)  # the rest that a killed pass left
            return
        if not is_over(since, self.terms.workspaces_days, self.now):
            self._kept_count += 1
            return
        with self._refusing("workspace", place.order_id), self._written_by_nobody(place.order_id):
            remove_workspace(place, options, accept_loss=self.terms.drop_ignored)
            self._home(place.order_id)
            last = list_snapshots(vault_at(place), place.order_id)[-1]
            self._removals.append(
                SweptItem(kind="workspace", name=place.order_id, snapshot=last.name, size_bytes=last.size_bytes)
            )

    def _runs(self, order_id: str, since: datetime) -> None:
        folder = self.state.runs / order_id
        if not folder.is_dir():
            return
        if not is_over(since, self.terms.runs_days, self.now):
            self._kept_count += 1
            return
        with self._refusing("runs", order_id), self._written_by_nobody(order_id):
            self._home(order_id)
            remove_closed(folder, self.state.trash)
            self._removals.append(SweptItem(kind="runs", name=order_id))

    def _home(self, order_id: str) -> None:
        """Delete what agents' CLIs have stored for a work order, such as sessions."""
        home = Homes(self.state.homes, Logins(self.state.logins)).close(order_id)
        if home is not None:
            remove_closed(home, self.state.trash)

    def _runs_alone(self) -> None:
        """Delete old runs of work orders that have no record on this host."""
        for order_id in folder_names(self.state.runs):
            with self._refusing("runs", order_id):
                since = datetime.fromtimestamp(changed_at(self.state.runs / order_id), UTC)
                is_due = is_over(since, self.terms.runs_days, self.now)
                if find_record(self.state, order_id) is not None or not is_due or not self.go_on():
                    continue
                owner = self.find_owner(order_id)
                if owner != _RUNNING:
                    self._runs(order_id, max(since, owner.closed_at or since))

    def _snapshots(self, place: Place, since: datetime) -> None:
        """If a work order has no workspace, forget its old snapshots; if none is left, delete its records."""
        if os.path.lexists(place.worktree):
            return
        vault = vault_at(place)
        every = list_snapshots(vault, place.order_id)
        old = self._old(every, since)
        self._kept_count += len(every) - len(old)
        if not old and every:
            return
        with self._refusing("snapshot", place.order_id), self._written_by_nobody(place.order_id):
            forget_snapshots(place, old)
            self._tell_forgotten(vault, old)
            if len(old) == len(every):
                forget_chain(vault, place.order_id)
                remove_closed(place.records, self.state.trash)

    def _moved_here(self, vault: Git) -> None:
        """Forget old snapshots that came from other hosts, if their work orders have no records on this host."""
        for order_id in sorted(set(owners(vault)) - set(folder_names(vault.git_dir / RECORDS))):
            with self._refusing("snapshot", order_id):
                every, owner = list_snapshots(vault, order_id), self.find_owner(order_id)
                old = self._old(every, owner.closed_at) if owner != _RUNNING else []
                self._kept_count += len(every) - len(old)
                forget_brought(vault, old)
                if len(old) == len(every):
                    forget_chain(vault, order_id)
                self._tell_forgotten(vault, old)

    def _old(self, every: list[Snapshot], since: datetime | None) -> list[Snapshot]:
        """Return the snapshots whose retention time is over, counted from the later of `since` and `taken_at`."""
        days = self.terms.snapshots_days
        moments = ((one, datetime.fromisoformat(one.taken_at)) for one in every)
        return [one for one, taken_at in moments if is_over(max(since or taken_at, taken_at), days, self.now)]

    def _tell_forgotten(self, vault: Git, old: list[Snapshot]) -> None:
        if old:
            self._forgot.add(vault.git_dir)
        self._removals += [SweptItem(kind="snapshot", name=one.name, size_bytes=one.size_bytes) for one in old]

    def _repository(self, vault: Git) -> None:
        """Delete a repository's mirror and vault if they were not used for the retention time."""
        mirror = self.state.mirrors / vault.git_dir.name
        lock = mirror_lock(mirror)
        if any(folder_names(vault.git_dir / RECORDS)):
            self._kept_count += 1
            return
        with self._refusing("mirror", mirror.name), hold_lock(lock), hold_lock(vault_lock(vault.git_dir)):
            used_at = datetime.fromtimestamp(max(map(changed_at, (mirror, mirror / "packed-refs", lock))), UTC)
            is_needed = bool(list_snapshots(vault)) or any(folder_names(vault.git_dir / RECORDS))
            if is_needed or not is_over(used_at, self.terms.mirrors_days, self.now):
                self._kept_count += 1
                return
            remove_closed(vault.git_dir, self.state.trash)
            if mirror.is_dir():
                remove_closed(mirror, self.state.trash)
            self._removals.append(SweptItem(kind="mirror", name=mirror.name))

    def _room(self, vault: Git) -> None:
        """Free disk space in a vault: delete unneeded objects and unfinished packs, and join many packs."""
        mirror = self.state.mirrors / vault.git_dir.name
        kept_for = timedelta(days=self.terms.forgotten_days)
        with self._refusing("snapshot", vault.git_dir.name):
            clear_unfinished_packs(vault.git_dir, kept_for)
            has_room = vault.git_dir in self._forgot or has_forgotten(vault, kept_for)
            if has_room and vault.git_dir.is_dir():
                drop_forgotten(vault, kept_for)
        with self._refusing("mirror", mirror.name):
            clear_unfinished_packs(mirror, kept_for)
            if mirror.is_dir():
                tidy_mirror(mirror, self.state.scratch, self.env)

    @contextmanager
    def _written_by_nobody(self, order_id: str) -> Iterator[None]:
        """Hold the work order's writer's lock while the block runs; first end a warm process."""
        folder = self.state.runs / order_id
        if folder.is_symlink():
            raise NotADirectoryError(0, "this is a link; it is left as it is", str(folder))
        was_there = folder.exists()
        lock = self.runs.lock_writer(order_id)
        if lock is None:
            raise BlockingIOError(0, "an agent or a person works there", str(self.state.workspaces / order_id))
        try:
            end_warm(self.runs, order_id)
            yield
        finally:
            if not was_there:
                remove_closed(folder, self.state.trash)
            os.close(lock)

    @contextmanager
    def _refusing(self, kind: SweptKind, name: str) -> Iterator[None]:
        """If the block, which deletes `name`, raises an error, record the error as a refusal and continue."""
        try:
            yield
        except (SeptetError, OSError) as error:
            self._refusals.append(SweptItem(kind=kind, name=name, why=str(error)[:500]))


def until(seconds: float) -> Callable[[], bool]:
    """Return a function that returns true until `seconds` have passed, even if the clock jumps."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end
