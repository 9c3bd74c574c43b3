"""One attempt at a step: prepare it, run its turn, and save the work if the turn fails.

Between two steps, only Septet may write in the worktree. Any other change is rescued, undone and reported.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

import structlog
from temporalio import activity

from activities.host.failures import failure
from activities.host.host import Host
from activities.host.running_attempts import Heartbeats
from activities.outgoing.plan import exclude_plan
from activities.turns.guard import AttemptFailedError, WorkEndedError, guarding
from activities.turns.prepared_steps import PreparedStep
from activities.turns.results import add_turn, begin_again, begin_result, with_reasons
from activities.turns.turn_budget import TurnBudget, run_turn
from septet.agents.runs.logs import record_refusals
from septet.agents.turns.guest_home import return_login
from septet.agents.turns.turn_runs import TurnResult, TurnRuns
from septet.contracts.facts import FileChange, Usage
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepResult
from septet.errors import (
    EvidenceError,
    LockHeldError,
    SeptetError,
    SnapshotError,
    WorkspaceBusyError,
    WorkspaceError,
)
from septet.git.engine.place import Place
from septet.git.evidence.evidence import gather
from septet.git.snapshots.scan import really_changed
from septet.git.vault.facts import Snapshot
from septet.git.vault.vault import find, first_and_last, list_snapshots, vault_at
from septet.git.workspace.plan import holds_plan, plan_file, put_plan_back
from septet.system.threads import shielded_thread

CHANGED_BETWEEN: Final = "the worktree was changed between steps; it was restored to what the previous step left"
"""The reason of the rescue, and the step's warning, if files changed between steps."""
PLAN_CHANGED: Final = "the plan's file was changed; it was restored to the plan that was found"
"""The reason of the rescue, and the step's warning, if only the plan changed."""

_ANEW: Final = "the step starts again from its checkpoint"

C = TypeVar("C")

_log = structlog.get_logger()


@dataclass(slots=True)
class StepAttempt:
    """One attempt at a step, or at its finalizer."""

    host: Host
    prepared_step: PreparedStep
    heartbeats: Heartbeats
    result: StepResult = field(init=False)
    """The step's result, which the caller sets; if a person ended the work, `attempting` sets it."""
    budget: TurnBudget | None = field(init=False)
    """The turn's budget; `None` if this host has no accounts."""
    warnings: tuple[str, ...] = field(default=(), init=False)
    """Warnings about changes before the step, which the attempt has undone."""

    def __post_init__(self) -> None:
        """Create the turn's budget."""
        accounts = self.host.accounts
        self.budget = TurnBudget(self.host, accounts, self.prepared_step) if accounts is not None else None

    async def run_turn(self, *, begins_step: bool = False) -> TurnResult:
        """Run the turn; a new agent starts in a worktree that is as it was at the step's start.

        If the turn begins a step, this first undoes changes since the previous step.
        """
        if begins_step:
            seeing = shielded_thread(self.host.threads.disk, see_untouched, self.host, self.prepared_step)
            if self.budget is None or activity.info().attempt > 1:
                self.warnings = await seeing
            else:
                self.warnings, _ = await asyncio.gather(seeing, self.budget.request_ahead())
        result = await run_turn(
            self.prepared_step.request,
            lease=self.prepared_step.fence.lease,
            on_progress=self.heartbeats.progress.append,
            leave_work=partial(shielded_thread, self.host.threads.disk, self._leave_work),
            budget=self.budget,
        )
        if self.prepared_step.call.settles and result.recovered_by == "read":
            result = replace(result, usage=Usage(), duration_seconds=0.0, agent_starts=0, recovered_by=None)
        return result

    def _leave_work(self) -> None:
        """Rescue an earlier agent's work; restore the checkpoint from which the step starts, if it has one."""
        step, snapshots = self.prepared_step, self.host.snapshots
        if step.starts_from:
            snapshots.return_to(step.place, step.starts_from, _ANEW, step.call.name)
        else:
            snapshots.rescue(step.place, _ANEW, step.call.name)

    async def end(self, verdict: Verdict, reason: str) -> StepResult:
        """Take a rescue, and return the step's facts with the given verdict and reason.

        Raises:
            SupersededError: A later attempt has begun, and the worktree belongs to the later attempt.
        """
        disk = self.host.threads.disk
        self.prepared_step.fence.lease.check()
        last = await shielded_thread(disk, _last_result, self.prepared_step)
        if self.budget is not None:
            await self.budget.report(last.outcome.model if last is not None else None)
        return await shielded_thread(disk, _rescued_result, self.host, self.prepared_step, last, verdict, reason)


@asynccontextmanager
async def attempting(
    host: Host, prepare: Callable[[Host, C], PreparedStep], call: C
) -> AsyncIterator[StepAttempt]:
    """Yield an attempt for the block; if the attempt fails for good or a person cancels, save the work.

    Raises:
        ApplicationError: The step failed; the details hold the remedy and the known facts of the step.
    """
    async with host.working() as heartbeats:
        attempt = StepAttempt(host, await shielded_thread(host.threads.disk, prepare, host, call), heartbeats)
        try:
            async with guarding(host, attempt.prepared_step):
                yield attempt
        except WorkEndedError as ended:
            attempt.result = await attempt.end(Verdict.CANCELLED, str(ended))
        except AttemptFailedError as failed:
            result = await attempt.end(Verdict.FAILED, failed.error.message)
            raise failure(failed.error, result) from failed.__cause__


def _rescued_result(
    host: Host, prepared_step: PreparedStep, last: TurnResult | None, verdict: Verdict, reason: str
) -> StepResult:
    """Take a rescue, and return the step's facts; if the rescue fails, they include the error."""
    prepared_step.fence.lease.check()
    if last is not None:
        record_refusals(prepared_step.call, last.run)
    return_login(prepared_step.request)
    reasons = [reason]
    try:
        host.snapshots.rescue(prepared_step.place, reason[:200], prepared_step.call.name)
    except (SnapshotError, LockHeldError, OSError) as error:
        reasons.append(str(error))
    if prepared_step.earlier is not None:
        result = add_turn(begin_again(prepared_step.earlier), last)
    else:
        result = begin_result(prepared_step.call, last, _changes(prepared_step))
    rescues = host.snapshots.rescues_of(prepared_step.place, prepared_step.call)
    return with_reasons(result, verdict, tuple(reasons)).model_copy(update={"rescues": rescues})


def _last_result(prepared_step: PreparedStep) -> TurnResult | None:
    """Return the last agent's result; `None` if it is missing or unreadable."""
    try:
        return TurnRuns(prepared_step.request).last_result()
    except (OSError, WorkspaceBusyError):
        return None


def _changes(prepared_step: PreparedStep) -> tuple[FileChange, ...]:
    """Return the changes that git reports; an empty tuple if the agent has broken its repository."""
    try:
        return gather(prepared_step.place, prepared_step.began_at).files_changed
    except (SeptetError, OSError):
        return ()


def see_untouched(host: Host, prepared_step: PreparedStep) -> tuple[str, ...]:
    """Rescue and undo changes since the previous step, and return warnings about them.

    Ignored files count as changes. `.git` does not, because a person's `git status` writes there. Once an agent of
    this step has begun, nothing is compared: the retry handles its work. A second try keeps the first try's
    worktree, but a changed plan is restored.

    Raises:
        SnapshotError: The worktree could not be secured; nothing was changed.
        WorkspaceBusyError: An agent works in the worktree.
        WorkspaceError: The plan has changed since it was found, and cannot be restored.
    """
    warnings = _put_all_back(host, prepared_step)
    path = prepared_step.call.progress.plan_path
    if path and prepared_step.repository_settings.pull_request.plan != "commit":
        exclude_plan(prepared_step.place, prepared_step.fence.lease, path)
    return warnings


def _put_all_back(host: Host, prepared_step: PreparedStep) -> tuple[str, ...]:
    if not _begins(prepared_step):
        return ()
    call, warnings = prepared_step.call, []
    if not call.workspace.lane:
        with prepared_step.fence.lease.hold():
            if _put_back(host, prepared_step):
                warnings.append(CHANGED_BETWEEN)
    if call.step is Step.IMPLEMENT_PLAN and call.rework is None:
        if _put_plan_back(host, prepared_step):
            warnings.append(PLAN_CHANGED)
        _expect_plan(prepared_step)
    return tuple(warnings)


def _put_plan_back(host: Host, prepared_step: PreparedStep) -> bool:
    """Restore the found plan if its file has changed; return whether the plan was restored."""
    call, place, progress = prepared_step.call, prepared_step.place, prepared_step.call.progress
    path, sha256 = progress.plan_path, progress.plan_sha256
    if not path or not sha256 or _plan_digest(place, path) == sha256:
        return False
    source = next((each for each in _with_plan(prepared_step) if holds_plan(place, each, path, sha256)), None)
    if source is None:
        return False
    with prepared_step.fence.lease.hold():
        host.snapshots.rescue_once(place, PLAN_CHANGED, call.name)
        current = host.snapshots.checkpoint_once(place, PLAN_CHANGED)
        put_plan_back(place, current, source, path, host.snapshots.options(PLAN_CHANGED, call.name))
        host.snapshots.take(place, "checkpoint", PLAN_CHANGED, call.name)
    _log.warning("plan_changed", step=call.step, paths=[path], returns_to=source.name)
    return True


def _with_plan(prepared_step: PreparedStep) -> Iterator[Snapshot]:
    call, vault = prepared_step.call, vault_at(prepared_step.place)
    if start := call.starts_from or call.workspace.checkpoint:
        yield find(vault, start)
    for snapshot in reversed(list_snapshots(vault, prepared_step.place.order_id)):
        if (snapshot.kind, snapshot.step) == ("checkpoint", Step.FIND_PLAN_FILE):
            yield snapshot


def _plan_digest(place: Place, path: str) -> str:
    """Return the SHA-256 of the plan's file; an empty text without a file."""
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
    """Return whether this attempt begins the step: no agent has begun the step, not even before a reset."""
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
    scan = host.snapshots.scan(place)
    changed = really_changed(place, scan) if scan.since else []
    if not changed:
        return False
    known = first_and_last(vault_at(place), place.order_id)
    if known is None:
        return False
    last, start = known[1], call.starts_from or call.workspace.checkpoint
    target = start if last.kind == "rescue" and call.attempt == 1 and start else last.name
    if target != last.name and not host.snapshots.differs(place, target):
        return False  # the engine has restored the worktree after that rescue
    paths = [path.decode(errors="replace") for path in changed[:5]]
    _log.warning("changed_between_steps", step=call.step, paths=paths, returns_to=target)
    return host.snapshots.return_to(place, target, CHANGED_BETWEEN, call.name) is not None
