"""The rescues of one work order, written down as they are taken: an attempt that dies forgets none."""

import os
from typing import Final

import structlog
from pydantic import ValidationError

from septet.agents.runs.folders import Runs
from septet.contracts.facts import Rescue
from septet.contracts.steps import StepCall
from septet.errors import SnapshotError
from septet.git.engine.place import Place
from septet.git.snapshots.patch import write_patch
from septet.git.vault.facts import Snapshot
from septet.git.vault.vault import find, names_of_kind, vault_at
from septet.system.durable import close_after
from septet.system.preview import preview
from septet.telemetry.metrics import RESCUES
from septet.telemetry.recorder import RECORDER

_FILE: Final = "rescues.jsonl"

_log = structlog.get_logger()


def note_rescue(runs: Runs, place: Place, snapshot: Snapshot, host_id: str) -> Rescue:
    """Write the patch of a rescue beside the last run, and its note into the work order's records."""
    rescue = Rescue(
        snapshot=snapshot.name,
        reason=snapshot.reason,
        step=snapshot.step,
        patch=_write_patch(runs, place, snapshot),
        host=host_id,
        taken_at=snapshot.taken_at,
    )
    _append(place, rescue)
    RECORDER.record(RESCUES, step=rescue.step)
    _log.info("rescue_taken", snapshot=rescue.snapshot, reason=preview(rescue.reason), patch=rescue.patch)
    return rescue


def _write_patch(runs: Runs, place: Place, snapshot: Snapshot) -> str | None:
    """Write `rescue.patch` and return its path; without it the snapshot still stands."""
    last = next(reversed(runs.of(place.order_id)), None)
    folder = last.folder if last is not None else runs.folder_of(place.order_id)
    path = folder / "rescue.patch"
    if path.exists():
        path = path.with_name(f"rescue-{snapshot.name.rpartition('/')[2]}.patch")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(path) if write_patch(place, snapshot, path) is not None else None
    except (SnapshotError, OSError) as error:
        _log.warning("rescue_patch_failed", snapshot=snapshot.name, error=str(error))
        return None


def _append(place: Place, rescue: Rescue) -> None:
    with close_after(os.open(place.records / _FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)) as file:
        # Half a line that a dying machine left ends here; an empty one is passed over.
        os.write(file, b"\n" + rescue.model_dump_json().encode() + b"\n")
        os.fsync(file)


def rescues_of(runs: Runs, call: StepCall, place: Place, host_id: str) -> tuple[Rescue, ...]:
    """Return what was kept since a step began, oldest first, also by attempts that died.

    A step may begin with an older snapshot than its work order: what a lane kept before is others'. A rescue of
    the step that a worker took and did not live to note is noted now.
    """
    last = max(_number(call.starts_from), _number(call.workspace.entered_after))
    noted = {rescue.snapshot: rescue for rescue in _read_notes(place) if _number(rescue.snapshot) > last}
    for name in names_of_kind(place, "rescue"):
        if _number(name) > last and name not in noted:
            snapshot = find(vault_at(place), name)
            if snapshot.step == call.name:
                noted[name] = note_rescue(runs, place, snapshot, host_id)
    return tuple(sorted(noted.values(), key=lambda rescue: _number(rescue.snapshot)))


def _read_notes(place: Place) -> list[Rescue]:
    """Return all that was noted; half a line, of a machine that lost its power, is passed over."""
    try:
        lines = (place.records / _FILE).read_bytes().splitlines()
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
    """Return the number in `<work order>/<number>-<kind>`; 0 for an empty name, which stands for the beginning."""
    number = snapshot.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdigit() else 0
