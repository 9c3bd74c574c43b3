"""Between two steps nobody but the engine writes: what has changed all the same is kept, put back, and told."""

import hashlib
from typing import Final

import structlog

from activities._prepared_steps import PreparedStep
from activities.host import Host
from septet.contracts.names import Step
from septet.errors import WorkspaceError
from septet.git.evidence import plan_file
from septet.git.snapshots.sameness import really_changed
from septet.git.snapshots.vault import first_and_last, vault_at

TOLD: Final = "the worktree was changed between steps; it was restored to what the previous step left"
"""What a rescue and a step's warning say."""

_log = structlog.get_logger()


def see_untouched(host: Host, prepared_step: PreparedStep) -> bool:
    """Put back what was changed since the step before, and return whether there was anything; a rescue holds it.

    Ignored files count, `.git` does not: a person's `git status` writes in it, and the evidence tells commits and
    branches. Nothing is compared where an agent of this step, or of before a reset, has begun: the ladder of a
    retry looks after what that one left.

    Raises:
        SnapshotError: What is there could not be kept; then nothing was changed.
        WorkspaceBusyError: An agent works in the worktree.
        WorkspaceError: The plan is not the one that was approved.
    """
    if not _begins(prepared_step):
        return False
    changed = False
    if not prepared_step.call.workspace.lane:
        with prepared_step.fence.lease.hold():
            changed = _put_back(host, prepared_step)
    call = prepared_step.call
    if call.step is Step.IMPLEMENT_PLAN and call.attempt == 1 and call.rework is None:
        _expect_plan(prepared_step)
    return changed


def _expect_plan(prepared_step: PreparedStep) -> None:
    progress, place = prepared_step.call.progress, prepared_step.place
    if not progress.plan_path or not progress.plan_sha256:
        return
    name = plan_file(place, progress.plan_path)
    with (place.worktree / name).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != progress.plan_sha256:
        message = (
            f"{name} has changed since the plan was found: its SHA-256 is {found}, and was {progress.plan_sha256}."
        )
        raise WorkspaceError(
            message, remedy="Look at the rescue, then run `septet retry` from the step find_plan_file."
        )


def _begins(prepared_step: PreparedStep) -> bool:
    """Say whether this is the first look at a step whose work order was not reset."""
    request = prepared_step.request
    runs, key = request.runtime.runs.of(request.order_id), request.key
    if not runs:
        return True
    record = runs[-1].record
    if record is None or any(run.record is not None and run.record.key == key for run in runs):
        return False
    return record.key.workflow_id != key.workflow_id or record.key.run_id == key.run_id


def _put_back(host: Host, prepared_step: PreparedStep) -> bool:
    call, place = prepared_step.call, prepared_step.place
    scan = host.scan(place)
    changed = really_changed(place, scan) if scan.since else []
    if not changed:
        return False
    known = first_and_last(vault_at(place), place.order_id)
    if known is None:
        return False
    last, start = known[1], call.starts_from or call.workspace.checkpoint
    target = start if last.kind == "rescue" and call.attempt == 1 and start else last.name
    if target != last.name and not host.differs(place, target):
        return False  # the engine has put it back after that rescue
    paths = [path.decode(errors="replace") for path in changed[:5]]
    _log.warning("changed_between_steps", step=call.step, paths=paths, returns_to=target)
    return host.return_to(place, target, TOLD, call.name) is not None
