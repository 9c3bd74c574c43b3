"""Find and rescue what agents left in a clone besides the result of their step."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from activities.host.host import Host
from activities.turns.prepared_steps import PreparedStep
from activities.workspaces.workspace_setup import find_setup
from septet.contracts.facts import LEFT_BESIDE_PLAN, Rescue
from septet.contracts.names import Step
from septet.contracts.steps import StepCall
from septet.contracts.wire import Wire
from septet.errors import NotFoundError
from septet.git.commits.branches import bring_branch_to_head
from septet.git.commits.elsewhere import lay_back, work_beside, work_elsewhere
from septet.git.engine.place import Place
from septet.git.evidence.beside_plan import BeforeAgents, Leftovers, PlanAlone
from septet.git.evidence.evidence import Evidence
from septet.git.snapshots.destroy import return_git_folder
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.vault import find, first_and_last, vault_at
from septet.git.worktree.dot_git import Head
from septet.git.worktree.view import lost_repository
from septet.system.durable import read_model, write_durably
from septet.system.text import cut, name_some

_FILE: Final = "plan-alone.json"
_SHOWN_PATHS: Final = 8

_log = structlog.get_logger()


class _Return(Wire):
    """The note that a worktree's return to its first state has begun; it lies where no guest can write."""

    run: str
    """The agent run whose answer named the plan."""
    plan: str
    current: str


def leave_plan_alone(host: Host, prepared_step: PreparedStep, run: str, plan: str, current: Snapshot) -> bool:
    """Undo all changes of the worktree except the plan, and return whether files changed.

    The worktree returns to its state before the first agent. If this attempt dies, `finish_return` completes the
    return, by a note on disk.

    Raises:
        EvidenceError: The plan lies behind a new link, or no snapshot holds its file; nothing was changed.
        SnapshotError: The worktree could not be secured first; nothing was changed.
    """
    place = prepared_step.place
    begun = _Return(run=run, plan=plan, current=current.name)
    write_durably(place.records / _FILE, begun.model_dump_json().encode())
    return _keep_plan_alone(host, prepared_step, plan, current)


def finish_return(host: Host, prepared_step: PreparedStep, run: str) -> bool:
    """Finish a worktree's return that a dead attempt began; call this before the worktree is read.

    Returns: Whether a return had begun for this agent run.

    Raises:
        SnapshotError: The disk failed.
    """
    place = prepared_step.place
    begun = read_model(place.records / _FILE, _Return)
    if begun is None or begun.run != run:
        return False
    known = first_and_last(vault_at(place), place.order_id)
    if known is not None and known[1].reason.startswith(LEFT_BESIDE_PLAN):
        current = find(vault_at(place), begun.current)
        _keep_plan_alone(host, prepared_step, begun.plan, current, begun_by=known[1])
    return True


def end_return(place: Place) -> None:
    """Delete the note of a worktree's return; call this after the next checkpoint."""
    (place.records / _FILE).unlink(missing_ok=True)


def _keep_plan_alone(
    host: Host, prepared_step: PreparedStep, plan: str, current: Snapshot, *, begun_by: Snapshot | None = None
) -> bool:
    place, step = prepared_step.place, prepared_step.call.name

    def options_of(leftovers: Leftovers, aside: Path | None) -> SnapshotOptions:
        reason = f"{LEFT_BESIDE_PLAN}: {name_some(leftovers.shown_paths, _SHOWN_PATHS)}"
        if aside is not None:
            reason += f"; what is too large for a rescue is in {aside}"
        if leftovers.paths:
            _log.warning("planner_left_files", step=step, paths=leftovers.shown_paths[:_SHOWN_PATHS])
        return host.snapshots.options(cut(reason, 600), step)

    prepared_step.fence.lease.check()
    before = _before_agents(host, prepared_step)
    is_changed, rescue = PlanAlone(place, current, before, plan).keep(options_of, begun_by=begun_by)
    host.snapshots.note_rescue(place, rescue)
    return is_changed


def _before_agents(host: Host, prepared_step: PreparedStep) -> BeforeAgents:
    place, workspace = prepared_step.place, prepared_step.call.workspace
    vault = vault_at(place)
    try:
        first = find(vault, workspace.planned_from or workspace.checkpoint)
    except NotFoundError:  # a lane's, on another host
        first = find(vault, workspace.checkpoint)
    names, shares_files = find_setup(place), not host.sandbox.confines
    if names is None or names[1] == first.name:
        return BeforeAgents(first, shares_files=shares_files)
    setup = find(vault, names[0]), find(vault, names[1])
    return BeforeAgents(first, setup if setup[1].taken_at > first.taken_at else None, shares_files)


_LAID: Final = "its files were laid there now; see that they are whole and right."
MAKES_WORK: Final = frozenset({Step.IMPLEMENT_PLAN, Step.CREATE_COMMIT})
"""The steps whose agents may leave work in other places of the clone."""


@dataclass(frozen=True, slots=True)
class WorkElsewhere:
    """Work that an agent left in a clone, but outside of the worktree."""

    places: tuple[str, ...] = ()
    is_laid: bool = False
    """Whether Septet copied the files of the work into the worktree."""


NO_WORK: Final = WorkElsewhere()


def take_clone(host: Host, prepared_step: PreparedStep) -> tuple[str, tuple[str, ...]]:
    """Restore a lost `.git`, and move the branch to HEAD if HEAD only adds commits to the branch.

    Returns a report about `.git`, empty if `.git` is unchanged, and warnings about HEAD.
    """
    call, place, was_on = prepared_step.call, prepared_step.place, ""
    report, branch = _put_repository_back(host, prepared_step), call.progress.branch_name
    if branch:
        since = prepared_step.began_at if call.rework is None else place.base_sha
        was_on = bring_branch_to_head(place, branch, since) or ""
    taken = f"the agent left HEAD on {was_on}: what it has done there was taken to {branch}"
    return report, (taken,) if was_on else ()


def _put_repository_back(host: Host, prepared_step: PreparedStep) -> str:
    """Restore `.git` if an agent has deleted or recreated it, and return a report.

    All other files of the worktree stay, and a rescue holds the earlier state. The report is empty if `.git` is
    unchanged or its earlier state is unknown.
    """
    call, place = prepared_step.call, prepared_step.place
    start, what = prepared_step.starts_from or call.workspace.checkpoint, lost_repository(place)
    if not what or not start:
        return ""
    options = host.snapshots.options(what, call.name)
    snapshot = return_git_folder(place, find(vault_at(place), start), options)
    rescue = host.snapshots.note_rescue(place, snapshot)
    _log.warning("repository_put_back", step=call.name, returns_to=start)
    kept = f" {_restoring(rescue)}" if rescue is not None else ""
    return (
        f"{what}. It is as before the step again, and the files of the working tree are as they were left: "
        f"continue with them, and leave `.git` in place.{kept}"
    )


def beside_the_work(prepared_step: PreparedStep, head: Head) -> tuple[str, ...]:
    """Return a warning if the clone has work that is not part of the step's finished work."""
    places = work_beside(prepared_step.place, head, prepared_step.call.progress.branch_name)
    return (f"not part of the work, and left in the clone: {'; '.join(places)}",) if places else ()


def find_elsewhere(host: Host, prepared_step: PreparedStep, evidence: Evidence) -> WorkElsewhere:
    """Return the work that is in the clone, but not in the worktree.

    If `implement_plan` changed no file but the plan, copy that work into the worktree for the next try.
    """
    call, place = prepared_step.call, prepared_step.place
    places = work_elsewhere(place, evidence.head, call.progress.branch_name)
    is_idle = all(change.path == call.progress.plan_path for change in evidence.files_changed)
    if not (places and is_idle and call.step is Step.IMPLEMENT_PLAN):
        return WorkElsewhere(places)
    options = host.snapshots.options("work stands elsewhere in the clone", call.name)
    return WorkElsewhere(places, is_laid=lay_back(place, evidence.head, options))


def how_to_get(work: WorkElsewhere, rescue: Rescue | None, call: StepCall) -> tuple[str, ...]:
    """Return messages about work that does not count: where it is, and how the next try or a person gets it."""
    if not work.places:
        return ()
    branch = call.progress.branch_name
    there = f"what is in the working tree on branch {branch}" if branch else "what is in the working tree"
    where = f"Work stands elsewhere in the clone, where it does not count: {'; '.join(work.places)}."
    how = f"Only {there} counts: {_LAID if work.is_laid else 'bring it there.'}"
    kept = f" {_restoring(rescue)}" if rescue is not None else ""
    anew = f" `septet retry {call.workspace.work_order_id} --from {call.step.value}` does the step again."
    return (f"{where} {how}{kept}{anew if call.rework is None else ''}",)


def _restoring(rescue: Rescue) -> str:
    return f"`septet rescue restore {rescue.snapshot} --to DIR` gives back the clone as it was left."
