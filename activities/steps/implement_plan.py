"""Prove step 5 by the changed files; in a pipeline, also by the state of each task of the solution."""

import os
import re
from dataclasses import replace
from typing import Final

from activities.host.claims import Claim, Proof, RefusedError
from activities.host.host import Host
from activities.outgoing.submodules import refuse_lost_submodules, warn_of_edits_inside
from septet.contracts.answers import ImplementPlanAnswer
from septet.contracts.solution import ExecutionAnswer, ExecutionRecord
from septet.errors import EvidenceError
from septet.git.commits.new_base import unfit_files
from septet.git.engine.objects import read_base_file
from septet.git.evidence.evidence import contains, keeps, look, stage
from septet.git.evidence.pushable_objects import refuse_large_files
from septet.pipelines.solution import check_execution, normal_path_in, why_outside
from septet.pipelines.store import issue_of, store_of
from septet.system.text import name_some

_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")

ImplementClaim = Claim[ImplementPlanAnswer | ExecutionAnswer]


def prove_implement_plan(host: Host, claim: ImplementClaim) -> Proof:
    """Check that files other than the plan changed, on the work's own branch; the agent's commits stay.

    Raises:
        RefusedError: The agent reports that the work failed.
        EvidenceError: The agent's report is wrong.
    """
    progress, head, answer = claim.call.progress, claim.evidence.head, claim.answer
    if not _is_success(answer):
        raise RefusedError(f"The agent says that the work failed: {answer.summary}")
    inside = warn_of_edits_inside(claim, refuses=True)
    if all(change.path == progress.plan_path for change in claim.evidence.files_changed):
        nothing = "Nothing changed beyond the plan's file in the working tree, though the answer says success."
        raise EvidenceError(" ".join((nothing, *inside)))
    if head.branch != progress.branch_name:
        raise EvidenceError(f"HEAD is on {head.branch or 'no branch'}: go back to {progress.branch_name}.")
    if not keeps(claim.place, claim.began_at):
        raise EvidenceError(f"The branch no longer holds {claim.began_at}, where the work began.")
    refuse_large_files(claim.place, claim.evidence.files_changed)
    if paths := unfit_files(claim.place):
        raise EvidenceError(f"The conflict is not resolved: {name_some(paths, 20)} still hold its markers.")
    warnings = (*_see_submodules(host, claim), *inside)
    proof = _prove_execution(host, claim, answer) if isinstance(answer, ExecutionAnswer) else Proof(answer.summary)
    return replace(proof, warnings=(*warnings, *proof.warnings))


def _see_submodules(host: Host, claim: ImplementClaim) -> tuple[str, ...]:
    """Raise if a changed submodule's origin does not have the submodule's commit; return warnings."""
    folders = (claim.place.worktree / change.path for change in claim.evidence.files_changed)
    if not any(folder.is_dir() and not folder.is_symlink() for folder in folders):
        return ()
    return refuse_lost_submodules(host, claim, stage(claim.place, look(claim.place)).text("write-tree"))


def _prove_execution(host: Host, claim: ImplementClaim, answer: ExecutionAnswer) -> Proof:
    """Check an executor's answer against the solution and git, and write the execution's record to disk."""
    call, plan = claim.call, claim.call.progress.plan_path
    store, issue_id = store_of(host.state, call.pipeline), issue_of(call.pipeline, call.workspace.work_order_id)
    solution = store.solution(issue_id)
    changed = {change.path for change in claim.evidence.files_changed} - {plan or ""}
    claimed = {normal_path_in(claim.place.worktree, path) for path in answer.files_modified} - {plan or ""}
    gone = {path for path in claimed - changed if _is_gone(claim, path)}
    checked = check_execution(answer, solution, claimed - gone, changed)
    reasons = [*checked.findings, *_wrong_commit(claim, answer)]
    if reasons:
        raise EvidenceError("\n".join(reasons))
    claim.fence.lease.check()
    record = ExecutionRecord(
        summary=answer.summary, tasks=answer.tasks, files_modified=tuple(sorted(changed | gone))
    )
    store.keep_execution(issue_id, record)
    return Proof(answer.summary, warnings=checked.warnings)


def _is_success(answer: ImplementPlanAnswer | ExecutionAnswer) -> bool:
    return answer.status == "completed" if isinstance(answer, ExecutionAnswer) else answer.success


def _is_gone(claim: ImplementClaim, path: str) -> bool:
    """Return whether the base commit has `path` and the worktree lacks it, for example after a rename."""
    worktree = claim.place.worktree
    if why_outside(worktree, path) is not None or os.path.lexists(worktree / path):
        return False
    return read_base_file(claim.place, path) is not None


def _wrong_commit(claim: ImplementClaim, answer: ExecutionAnswer) -> tuple[str, ...]:
    given = answer.commit_hash
    if given is None:
        return ()
    if _COMMIT.fullmatch(given) and contains(claim.place, claim.evidence.head.sha, given):
        return ()
    return (f"commit_hash {given[:64]!r} is not a commit of this branch: give null if you made none.",)
