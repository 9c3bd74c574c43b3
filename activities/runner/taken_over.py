"""Adopt pushed work that a host no longer knows after its restore from a backup: no agent is paid for it again.

The evidence is an open pull request at the tip of the work order's branch. The pull request has the work order's
mark, and the worker's account opened it. The step's proof then checks the pushed work.
"""

import json
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, Final

import structlog

from activities.host.host import Host
from activities.runner.judgement import Judge
from activities.turns.prepared_steps import PreparedStep
from activities.turns.results import add_warnings, begin_result
from septet.agents.runs.folders import SETUP_FOLDER
from septet.agents.runs.lease import was_restored
from septet.answers.ladder import Answer
from septet.contracts.answers import CreateCommitAnswer, ImplementPlanAnswer, PullRequestUrl
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.forges.forge import Forge
from septet.forges.opening import own_pull_request
from septet.forges.values import PullRequest, ended_one
from septet.git.commits.branches import create_branch
from septet.git.commits.push import is_own_push, note_push, pushed_branches
from septet.git.commits.rework_tree import fetch_tips, go_to, is_clean
from septet.git.engine.configuration import identity
from septet.git.engine.place import Place
from septet.git.evidence.evidence import contains, gather
from septet.git.worktree.dot_git import read_head
from septet.git.worktree.view import view_git
from septet.system.durable import write_durably
from septet.system.text import cut

RECOVERY: Final = "pushed"
_REASON: Final = "what was pushed before the restore is taken over"
_FILE: Final = "taken-over.json"
_STEPS: Final = frozenset({Step.IMPLEMENT_PLAN, Step.CREATE_COMMIT, Step.CREATE_PULL_REQUEST})

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Pushed:
    """The pushed work and its pull request on the forge."""

    sha: str
    pull_request: PullRequest


def find_pushed(host: Host, step: PreparedStep) -> Pushed | None:
    """Return a step's work if it was pushed before its host was restored; `None` if an agent has to work.

    Work that a person or a proof has rejected is never adopted.

    Raises:
        GitUnavailableError, ForgeUnavailableError: The origin or the forge did not answer; no agent may start.
        GitError, ForgeError: The origin or the forge refused, or the pull request has ended.
    """
    call, place, branch = step.call, step.place, step.call.progress.branch_name or ""
    if call.step not in _STEPS or call.rework is not None or call.reads or call.attempt > 1 or call.reasons:
        return None
    if call.workspace.lane or not call.workspace.checkpoint:
        return None
    if not was_restored(host.runs, call.workspace.place_id):
        _refuse_ended(host, call, place, branch)
        return None
    tips = fetch_tips(place, branch, host.forges.token_for(place.destination))
    _, forge = host.forges.of(call.workspace.repository)
    found = _find(forge, call, branch, tips.head if tips is not None else "")
    if tips is None or found is None or not contains(place, tips.head, step.began_at):
        return None
    git = view_git(place)
    if git.text("show", "-s", "--format=%ce", tips.head) != identity(git).environ["GIT_COMMITTER_EMAIL"]:
        return None  # a person has continued the branch: nothing here may replace that work
    is_known = is_own_push(place, branch, tips.head) and _taken_over(place) != (step.fence.key.run_id, tips.head)
    is_other_plan = call.approve_plan and not _holds_plan(place, call, tips.head)
    return None if is_known or is_other_plan else Pushed(tips.head, found)


def _refuse_ended(host: Host, call: StepCall, place: Place, branch: str) -> None:
    """Raise if the pull request has ended: Septet opens no second pull request for a branch."""
    if branch not in pushed_branches(place):
        return
    _, forge = host.forges.of(call.workspace.repository)
    ours = _pull_requests_of(forge, call, branch)
    states = {each.state for each in ours}
    if states == {"closed"} or (states and "open" not in states and call.step is Step.IMPLEMENT_PLAN):
        raise ended_one(ours[0])


def judge_pushed(host: Host, step: PreparedStep, push: Pushed) -> StepResult:
    """Move the worktree to the pushed commit, and prove the step by it; no agent starts.

    Idempotent: a worktree at that commit is not changed. A rescue holds the worktree's earlier state.

    Raises:
        SupersededError, HaltedError: A later attempt has begun, or this attempt was cancelled.
        WorkspaceBusyError: Another process holds the writer's lock.
    """
    place, runs = step.place, host.runs
    with step.fence.lease.hold() as writer_lock:
        step.fence.check()
        _lay(host, step, push)
        host.snapshots.scan(place)
        evidence = gather(place, step.began_at)
        folder = runs.folder_of(step.workspace.place_id) / SETUP_FOLDER
        guests = partial(host.guests, place, folder, writer_lock)
        result = begin_result(step.call, None, evidence.files_changed).model_copy(
            update={"recovered_by": RECOVERY}
        )
        url = push.pull_request.url
        told = f"no agent was started: {url} was at {push.sha[:12]} before the restore, and is taken over"
        result = add_warnings(result, told)
        answer = Answer(_claim_of(place, step.call, push), "plain")
        result = Judge(host, step, evidence, guests, "").judge(result, answer)
    _log.info("push_taken_over", step=step.call.name, commit=push.sha, pull_request=url)
    return result.model_copy(update={"parsed_by": None, "result_json": None})


def _find(forge: Forge, call: StepCall, branch: str, tip: str) -> PullRequest | None:
    """Return the branch's pull request if its last commit is `tip`; `None` for no such pull request."""
    order_id, fork = call.workspace.work_order_id, call.workspace.fork
    there = forge.pull_requests_of(branch, fork)
    found = own_pull_request(forge, there, order_id, tip, states=("open", "merged"))
    if found is None:
        ours = _pull_requests_of(forge, call, branch)
        if ours and all(each.state != "open" for each in ours):
            raise ended_one(ours[0])
    return found


def _pull_requests_of(forge: Forge, call: StepCall, branch: str) -> list[PullRequest]:
    workspace = call.workspace
    return [each for each in forge.pull_requests_of(branch, workspace.fork) if each.is_of(workspace.work_order_id)]


def _lay(host: Host, step: PreparedStep, push: Pushed) -> None:
    """Record the pushed commit as the work order's, then move the worktree and the branch to the commit."""
    place, branch = step.place, step.call.progress.branch_name or ""
    note = {"run_id": step.fence.key.run_id, "sha": push.sha}
    write_durably(place.records / _FILE, json.dumps(note).encode())
    note_push(place, branch, push.sha)
    head = read_head(place.worktree / ".git")
    if (head.branch, head.sha) == (branch, push.sha) and is_clean(place):
        return
    host.snapshots.return_to(place, step.call.workspace.checkpoint, _REASON, step.call.name)
    create_branch(place, branch)
    secured_by = host.snapshots.checkpoint_once(place, _REASON)
    go_to(place, branch, push.sha, host.snapshots.options(_REASON, step.call.name, secured_by))


def _taken_over(place: Place) -> tuple[str, str] | None:
    """Return the workflow run that adopted pushed work on this host, and the pushed commit; else `None`."""
    try:
        note = json.loads((place.records / _FILE).read_bytes())
    except FileNotFoundError:
        return None
    return note["run_id"], note["sha"]


def _holds_plan(place: Place, call: StepCall, sha: str) -> bool:
    path, plan = call.progress.plan_path, call.progress.plan_sha256
    content = view_git(place).try_run("cat-file", "blob", f"{sha}:{path}")
    return content.exit_code == 0 and sha256(content.stdout).hexdigest() == plan


def _claim_of(place: Place, call: StepCall, push: Pushed) -> Any:  # noqa: ANN401 -- each step has its own
    """Return an answer with the fields that the step's proof reads, in place of an agent's answer."""
    if call.step is Step.CREATE_PULL_REQUEST:
        return PullRequestUrl(url=push.pull_request.url)
    message = cut(view_git(place).text("show", "-s", "--format=%B", push.sha).strip(), 4000)
    if call.step is Step.CREATE_COMMIT:
        return CreateCommitAnswer(commit_message=message)
    return ImplementPlanAnswer(success=True, summary=message, key_changes_made=(), key_learnings=())
