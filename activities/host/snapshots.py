"""Take and read the snapshots of a host's work orders, and list their rescues."""

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

import structlog
from pydantic import ValidationError

from septet.agents.runs.folders import Runs
from septet.contracts.facts import Rescue
from septet.contracts.steps import StepCall
from septet.errors import SeptetError, SnapshotError
from septet.git.engine.place import Place
from septet.git.snapshots.destroy import disarm_repository, own_repository, return_to
from septet.git.snapshots.patch import write_patch
from septet.git.snapshots.scan import WorktreeScan, scan
from septet.git.snapshots.take import take
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.vault import find, first_and_last, names_of_kind, vault_at
from septet.system.durable import close_after
from septet.system.masking import preview
from septet.system.text import name_some
from septet.telemetry.metrics import RESCUES
from septet.telemetry.recorder import RECORDER

_LEFT: Final = "an agent or a check changed what git runs or follows; it was restored to what set-up left"
"""The reason of the rescue, and the step's warning, if an agent or a check changed `.git`."""
_SHOWN_PATHS: Final = 5
_NOTES: Final = "rescues.jsonl"

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Takes snapshots on a host, and restores worktrees from them."""

    host_id: str
    runs: Runs
    ignored_limit_bytes: int

    def scan(self, place: Place) -> WorktreeScan:
        """Scan a worktree; call this only while no process changes it.

        Raises:
            SnapshotError: The worktree cannot be read, or is larger than its limit.
        """
        return scan(place, ignored_limit_bytes=self.ignored_limit_bytes)

    def take(
        self,
        place: Place,
        kind: Literal["checkpoint", "rescue"],
        reason: str,
        step: str | None = None,
        last_scan: WorktreeScan | None = None,
    ) -> Snapshot | None:
        """Take and return a snapshot; `None` if nothing has changed. See `septet.git`'s `take` for `last_scan`."""
        return take(place, kind, self.options(reason, step), last_scan)

    def checkpoint_after_guest(
        self, place: Place, reason: str, step: str, last_scan: WorktreeScan | None = None
    ) -> tuple[Snapshot | None, tuple[str, ...]]:
        """Restore `.git` to its state before the guest, and take a checkpoint.

        Returns the checkpoint and warnings about `.git`. See `septet.git`'s `take` for `last_scan`.
        """
        warnings = self.own_repository(place, step)
        return self.take(place, "checkpoint", reason, step, None if warnings else last_scan), warnings

    def checkpoint_once(self, place: Place, reason: str) -> Snapshot:
        """Return a checkpoint of the present state; take a new snapshot unless the last one shows this state."""
        known = first_and_last(vault_at(place), place.order_id)
        last = known[1] if known and known[1].kind != "rescue" else None
        taken = take(place, "checkpoint", self.options(reason, equal_to=last))
        if (snapshot := taken or last) is None:
            raise SnapshotError(f"No snapshot of {place.worktree} was recorded.")
        return snapshot

    def rescue(self, place: Place, reason: str, step: str) -> Rescue | None:
        """Take a rescue if there is work to save; then restore the `.git` from before the guest."""
        try:
            snapshot = self.take(place, "rescue", reason, step)
        except SnapshotError:
            with suppress(OSError):
                disarm_repository(place)
            raise
        rescue = self.note_rescue(place, snapshot)
        self.own_repository(place, step, snapshot)
        return rescue

    def rescue_once(self, place: Place, reason: str, step: str) -> Rescue | None:
        """Take and return a rescue; `None` if the last snapshot already holds all work."""
        known = first_and_last(vault_at(place), place.order_id)
        snapshot = take(place, "rescue", self.options(reason, step, known[1] if known else None))
        return self.note_rescue(place, snapshot)

    def own_repository(self, place: Place, step: str, secured_by: Snapshot | None = None) -> tuple[str, ...]:
        """Restore `.git` to its state before the guest, and return warnings about the restored files.

        A failed restore does not fail the step; the next call tries again. `secured_by` is a snapshot of all work.
        """
        options = self.options(_LEFT, step, secured_by)
        try:
            paths, rescue = own_repository(place, options)
        except (SeptetError, OSError) as error:
            _log.warning("repository_not_owned", step=step, error=str(error))
            with suppress(OSError):
                disarm_repository(place)
            return ()
        self.note_rescue(place, rescue)
        if not paths:
            return ()
        _log.warning("repository_owned", step=step, paths=paths[:_SHOWN_PATHS])
        return (f"{_LEFT}: {name_some(paths, _SHOWN_PATHS)}",)

    def return_to(self, place: Place, checkpoint: str, reason: str, step: str) -> Rescue | None:
        """Restore a checkpoint in the worktree, and return the rescue of the earlier state.

        Raises:
            SnapshotError: The worktree could not be secured first; nothing was changed.
        """
        snapshot = return_to(place, find(vault_at(place), checkpoint), self.options(reason, step))
        return self.note_rescue(place, snapshot)

    def options(self, reason: str, step: str | None = None, equal_to: Snapshot | None = None) -> SnapshotOptions:
        """Return the options of a snapshot, which include the host's limit for ignored files."""
        return SnapshotOptions(reason, self.ignored_limit_bytes, step or None, equal_to)

    def differs(self, place: Place, checkpoint: str) -> bool:
        """If the worktree differs from a checkpoint, take a new checkpoint; return whether it differs."""
        options = self.options(f"differs from {checkpoint}", equal_to=find(vault_at(place), checkpoint))
        return take(place, "checkpoint", options) is not None

    def note_rescue(self, place: Place, snapshot: Snapshot | None) -> Rescue | None:
        """Write a rescue's patch, and add the rescue to the list; return `None` without a snapshot."""
        return self._note(place, snapshot) if snapshot is not None else None

    def rescues_of(self, place: Place, call: StepCall) -> tuple[Rescue, ...]:
        """Return the rescues since a step began, oldest first, including those of dead attempts.

        In a lane, rescues from before the work order's visit do not count. If a worker died before it
        listed a rescue, the rescue is listed now.
        """
        last = max(_number(call.starts_from), _number(call.workspace.entered_after))
        noted = {rescue.snapshot: rescue for rescue in _read_notes(place) if _number(rescue.snapshot) > last}
        for name in names_of_kind(place, "rescue"):
            if _number(name) > last and name not in noted:
                snapshot = find(vault_at(place), name)
                if snapshot.step == call.name:
                    noted[name] = self._note(place, snapshot)
        return tuple(sorted(noted.values(), key=lambda rescue: _number(rescue.snapshot)))

    def _note(self, place: Place, snapshot: Snapshot) -> Rescue:
        rescue = Rescue(
            snapshot=snapshot.name,
            reason=snapshot.reason,
            step=snapshot.step,
            patch=self._write_patch(place, snapshot),
            host=self.host_id,
            taken_at=snapshot.taken_at,
        )
        with close_after(os.open(place.records / _NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)) as file:
            # The first newline ends half a line that a dying machine left; readers skip an empty line.
            os.write(file, b"\n" + rescue.model_dump_json().encode() + b"\n")
            os.fsync(file)
        RECORDER.record(RESCUES, step=rescue.step)
        _log.info("rescue_taken", snapshot=rescue.snapshot, reason=preview(rescue.reason), patch=rescue.patch)
        return rescue

    def _write_patch(self, place: Place, snapshot: Snapshot) -> str | None:
        """Write `rescue.patch` in the last run's folder, and return its path; `None` if that fails."""
        last = next(reversed(self.runs.of(place.order_id)), None)
        folder = last.folder if last is not None else self.runs.folder_of(place.order_id)
        path = folder / "rescue.patch"
        if path.exists():
            path = path.with_name(f"rescue-{snapshot.name.rpartition('/')[2]}.patch")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return str(path) if write_patch(place, snapshot, path) is not None else None
        except (SnapshotError, OSError) as error:
            _log.warning("rescue_patch_failed", snapshot=snapshot.name, error=str(error))
            return None


def _read_notes(place: Place) -> list[Rescue]:
    try:
        lines = (place.records / _NOTES).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    rescues = []
    for line in lines:
        try:
            rescues.append(Rescue.model_validate_json(line))
        except ValidationError:
            continue
    return rescues


def _number(snapshot: str) -> int:
    """Return the number in a snapshot's name, `<work order>/<number>-<kind>`; 0 for an empty name."""
    number = snapshot.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdigit() else 0
