"""Take an agent's commits on top of the work's branch, and report all other changes of the agent's clone."""

from dataclasses import dataclass
from typing import Final

import structlog

from activities.host.host import Host
from activities.turns.prepared_steps import PreparedStep
from septet.contracts.facts import Rescue
from septet.contracts.names import Step
from septet.contracts.steps import StepCall
from septet.git.commits.branches import bring_branch_to_head
from septet.git.commits.elsewhere import lay_back, lost_repository, work_beside, work_elsewhere
from septet.git.evidence.evidence import Evidence
from septet.git.snapshots.destroy import return_git_folder
from septet.git.vault.vault import find, vault_at
from septet.git.worktree.dot_git import Head

_LAID: Final = "its files were laid there now; see that they are whole and right."
MAKES_WORK: Final = frozenset({Step.IMPLEMENT_PLAN, Step.CREATE_COMMIT})
"""The steps whose agents may leave work elsewhere in the clone."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WorkElsewhere:
    """Work in a clone that is not in the judged worktree."""

    places: tuple[str, ...] = ()
    """The places of the work, in words."""
    is_laid: bool = False
    """Whether the files of that work were written into the worktree."""


NO_WORK: Final = WorkElsewhere()


def take_clone(host: Host, prepared_step: PreparedStep) -> tuple[str, tuple[str, ...]]:
    """Restore a lost `.git`, and move the work's branch to a HEAD that only adds to the branch.

    Returns a report about `.git`, empty if `.git` is unchanged, and warnings about HEAD.
    """
    return _put_repository_back(host, prepared_step), _bring_forward(prepared_step)


def _put_repository_back(host: Host, prepared_step: PreparedStep) -> str:
    """If an agent has deleted or recreated `.git`, restore the `.git` from before the step; return a report.

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


def _bring_forward(prepared_step: PreparedStep) -> tuple[str, ...]:
    """If HEAD is not on the work's branch and only adds commits to it, move the branch to HEAD.

    Returns a warning if the branch has moved.
    """
    call, place = prepared_step.call, prepared_step.place
    if not (branch := call.progress.branch_name):
        return ()
    since = prepared_step.began_at if call.rework is None else place.base_sha
    was_on = bring_branch_to_head(place, branch, since)
    return (f"the agent left HEAD on {was_on}: what it has done there was taken to {branch}",) if was_on else ()


def beside_the_work(prepared_step: PreparedStep, head: Head) -> tuple[str, ...]:
    """Return a warning about work in the clone that is not part of the finished work."""
    places = work_beside(prepared_step.place, head, prepared_step.call.progress.branch_name)
    return (f"not part of the work, and left in the clone: {'; '.join(places)}",) if places else ()


def find_elsewhere(host: Host, prepared_step: PreparedStep, evidence: Evidence) -> WorkElsewhere:
    """Return the work in the clone that is not in the judged worktree.

    If the worktree holds no change but the plan, this writes the files of that work into the worktree, for the
    next try and for the rescue.
    """
    call, place = prepared_step.call, prepared_step.place
    places = work_elsewhere(place, evidence.head, call.progress.branch_name)
    is_idle = all(change.path == call.progress.plan_path for change in evidence.files_changed)
    if not (places and is_idle and call.step is Step.IMPLEMENT_PLAN):
        return WorkElsewhere(places)
    options = host.snapshots.options("work stands elsewhere in the clone", call.name)
    return WorkElsewhere(places, is_laid=lay_back(place, evidence.head, options))


def how_to_get(work: WorkElsewhere, rescue: Rescue | None, call: StepCall) -> tuple[str, ...]:
    """Return the message, for the next try and for people, where uncounted work lies and how to get it."""
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
