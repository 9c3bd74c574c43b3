"""Between two steps nobody but the engine writes: what has changed all the same is kept, put back, and told."""

import hashlib
from collections.abc import Iterator
from typing import Final

import structlog

from activities._plan_place import exclude_plan
from activities._prepared_steps import PreparedStep
from activities.host import Host
from septet.contracts.names import Step
from septet.errors import EvidenceError, WorkspaceError
from septet.git.engine.place import Place
from septet.git.evidence.evidence import plan_file
from septet.git.snapshots.sameness import really_changed
from septet.git.vault.facts import Snapshot
from septet.git.vault.vault import find, first_and_last, list_snapshots, vault_at
from septet.git.workspace.plan import holds_plan, put_plan_back

TOLD: Final = "the worktree was changed between steps; it was restored to what the previous step left"
"""What a rescue and a step's warning say."""
PLAN_TOLD: Final = "the plan's file was changed; it was restored to the plan that was found"
"""The same of the plan alone."""

_log = structlog.get_logger()


def see_untouched(host: Host, prepared_step: PreparedStep) -> tuple[str, ...]:
    """Put back what was changed since the step before, and return what is to be told of it; a rescue holds it.

    Ignored files count, `.git` does not: a person's `git status` writes in it, and the evidence tells commits and
    branches. Nothing is compared where an agent of this step, or of before a reset, has begun: the ladder of a
    retry looks after what that one left. A second try keeps the worktree of the first, but not its plan.

    Raises:
        SnapshotError: What is there could not be kept; then nothing was changed.
        WorkspaceBusyError: An agent works in the worktree.
        WorkspaceError: The plan is not the one that was approved.
    """
    told = _put_all_back(host, prepared_step)
    if prepared_step.repository_settings.pull_request.plan != "commit":
        exclude_plan(prepared_step)
    return told


def _put_all_back(host: Host, prepared_step: PreparedStep) -> tuple[str, ...]:
    if not _begins(prepared_step):
        return ()
    call, told = prepared_step.call, []
    if not call.workspace.lane:
        with prepared_step.fence.lease.hold():
            if _put_back(host, prepared_step):
                told.append(TOLD)
    if call.step is Step.IMPLEMENT_PLAN and call.rework is None:
        if _put_plan_back(host, prepared_step):
            told.append(PLAN_TOLD)
        _expect_plan(prepared_step)
    return tuple(told)


def _put_plan_back(host: Host, prepared_step: PreparedStep) -> bool:
    """Put back the plan that was found where another one is there now; say whether it was."""
    call, place, progress = prepared_step.call, prepared_step.place, prepared_step.call.progress
    path, sha256 = progress.plan_path, progress.plan_sha256
    if not path or not sha256 or _plan_digest(place, path) == sha256:
        return False
    source = next((each for each in _with_plan(prepared_step) if holds_plan(place, each, path, sha256)), None)
    if source is None:
        return False
    with prepared_step.fence.lease.hold():
        host.rescue_once(place, PLAN_TOLD, call.name)
        current = host.checkpoint_once(place, PLAN_TOLD)
        put_plan_back(place, current, source, path, host.rescue_options(PLAN_TOLD, call.name))
        host.snapshot(place, "checkpoint", PLAN_TOLD, call.name)
    _log.warning("plan_changed", step=call.step, paths=[path], returns_to=source.name)
    return True


def _with_plan(prepared_step: PreparedStep) -> Iterator[Snapshot]:
    """Give the snapshots that may hold the plan as it was found."""
    call, vault = prepared_step.call, vault_at(prepared_step.place)
    if start := call.starts_from or call.workspace.checkpoint:
        yield find(vault, start)
    for snapshot in reversed(list_snapshots(vault, prepared_step.place.order_id)):
        if (snapshot.kind, snapshot.step) == ("checkpoint", Step.FIND_PLAN_FILE):
            yield snapshot


def _plan_digest(place: Place, path: str) -> str:
    """Return the SHA-256 of the plan that is there; the empty string where it is no file."""
    try:
        with (place.worktree / plan_file(place, path)).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except EvidenceError:
        return ""


def _expect_plan(prepared_step: PreparedStep) -> None:
    progress, place = prepared_step.call.progress, prepared_step.place
    if not progress.plan_path or not progress.plan_sha256:
        return
    found = _plan_digest(place, progress.plan_path)
    if found != progress.plan_sha256:
        raise WorkspaceError(
            f"{progress.plan_path} has changed since the plan was found: its SHA-256 is {found or 'none'}, and "
            f"was {progress.plan_sha256}.",
            remedy="Run `septet retry ID --from find_plan_file`; `septet rescue list ID` names what was kept.",
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
