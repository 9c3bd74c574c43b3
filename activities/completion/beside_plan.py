"""Move the files that agents have left beside the plan into a rescue, and keep only the plan."""

from pathlib import Path
from typing import Final

import structlog

from activities.host.host import Host
from activities.turns.prepared_steps import PreparedStep
from activities.workspaces.workspace_setup import find_setup
from septet.contracts.facts import LEFT_BESIDE_PLAN
from septet.contracts.wire import Wire
from septet.errors import NotFoundError
from septet.git.engine.place import Place
from septet.git.evidence.beside_plan import BeforeAgents, Leftovers, PlanAlone
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.vault import find, first_and_last, vault_at
from septet.system.durable import read_model, write_durably
from septet.system.text import cut, name_some

_FILE: Final = "plan-alone.json"
_SHOWN_PATHS: Final = 8
_REASON_LENGTH: Final = 600

_log = structlog.get_logger()


class _Return(Wire):
    """A removal that has begun; the record of the removal lies beside the vault, out of the reach of guests."""

    run: str
    """The agent run whose answer named the plan."""
    plan: str
    current: str
    """The snapshot with all files that agents have left."""


def leave_plan_alone(host: Host, prepared_step: PreparedStep, run: str, plan: str, current: Snapshot) -> bool:
    """Bring the worktree back to the state before the first agent, plus the plan; return whether anything changed.

    Repeatable: the removal is recorded first, and `finish_return` finishes an interrupted removal.

    Raises:
        EvidenceError: The plan lies behind a new link, or no snapshot holds its file; nothing was changed.
        SnapshotError: The worktree could not be secured first; nothing was changed.
    """
    place = prepared_step.place
    begun = _Return(run=run, plan=plan, current=current.name)
    write_durably(place.records / _FILE, begun.model_dump_json().encode())
    return _keep_plan_alone(host, prepared_step, plan, current)


def finish_return(host: Host, prepared_step: PreparedStep, run: str) -> bool:
    """Finish a removal during which an attempt died, before any other code reads the worktree.

    Returns: Whether a removal had begun for this agent run.

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
    """Delete the record of a finished removal; call this after the next checkpoint is recorded."""
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
        return host.snapshots.options(cut(reason, _REASON_LENGTH), step)

    prepared_step.fence.lease.check()
    before = _before_agents(host, prepared_step)
    is_changed, rescue = PlanAlone(place, current, before, plan).keep(options_of, begun_by=begun_by)
    host.snapshots.note_rescue(place, rescue)
    return is_changed


def _before_agents(host: Host, prepared_step: PreparedStep) -> BeforeAgents:
    """Return the workspace's snapshot from before the first agent; a set-up may have run on this host since."""
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
