"""Make the lanes of a pipeline, and choose its next issue to plan or to execute, without side effects."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from septet.contracts.lanes import Lane
from septet.pipelines.views import IssueState, IssueStatus, PipelineRun

CLOSED: Final = frozenset({IssueStatus.COMPLETED, IssueStatus.FAILED, IssueStatus.SKIPPED, IssueStatus.CANCELLED})
"""The final statuses of an issue."""


def next_to_plan(
    issues: Iterable[IssueState], ready: Collection[str], held_back: Collection[str], plans_ahead: int
) -> IssueState | None:
    """Return the first waiting issue that is not held back; `None` if its work order is not `ready` for a lane.

    A person has moved the work orders `held_back` on the board so that they wait. If `plans_ahead` plans already
    wait for an executor, no issue is planned; plans that wait for another issue do not count.
    """
    all_issues = list(issues)
    status = {each.issue_id: each.status for each in all_issues}
    under_way = {IssueStatus.COMPLETED, IssueStatus.EXECUTING}
    due = (
        each.status is IssueStatus.PLANNED and all(status.get(before) in under_way for before in each.depends_on)
        for each in all_issues
    )
    if sum(due) >= plans_ahead:
        return None
    waiting = (each for each in all_issues if each.status is IssueStatus.WAITING)
    first = next((each for each in waiting if each.order_id not in held_back), None)
    return first if first is not None and first.order_id in ready else None


def next_to_execute(issues: Mapping[str, IssueState], passed_over: Collection[str] = ()) -> IssueState | None:
    """Return the issue to execute now: the first ready issue in the pipeline's order, or else `None`.

    All dependencies of a ready issue are completed, and no running issue may change the same files. The issues
    in `passed_over` are not returned.
    """
    working = [issue for issue in issues.values() if issue.status is IssueStatus.EXECUTING]
    for issue in issues.values():
        if issue.status is not IssueStatus.PLANNED or issue.issue_id in passed_over:
            continue
        is_ready = all(issues[before].status is IssueStatus.COMPLETED for before in issue.depends_on)
        if is_ready and not any(overlap(issue, other) for other in working):
            return issue
    return None


def find_doomed(issues: Mapping[str, IssueState], to_skip: Collection[str]) -> list[tuple[IssueState, str]]:
    """Return waiting or planned issues that can no longer succeed, each with the dependency that prevents it."""
    failures = CLOSED - {IssueStatus.COMPLETED}
    return [
        (issue, before)
        for issue in issues.values()
        if issue.status in {IssueStatus.WAITING, IssueStatus.PLANNED} and issue.issue_id not in to_skip
        for before in issue.depends_on
        if issues[before].status in failures or before in to_skip
    ]


def overlap(one: IssueState, other: IssueState) -> bool:
    """Return whether two issues may change the same file; an issue with unknown files may change any file."""
    ours, theirs = _files(one), _files(other)
    return ours is None or theirs is None or any(_meet(mine, its) for mine in ours for its in theirs)


def same_files(one: IssueState, other: IssueState) -> bool:
    """Return whether two issues have changed the same file."""
    paths = {change.path for change in one.files_modified}
    return any(change.path in paths for change in other.files_modified)


def _files(issue: IssueState) -> Sequence[str] | None:
    paths = tuple(change.path for change in issue.files_modified)
    if paths and issue.files_modified_count <= len(paths):
        return paths
    solution = issue.solution
    if paths or solution is None or solution.files_count > len(solution.files):
        return None
    return solution.files


def _meet(one: str, other: str) -> bool:
    """Return whether two paths are equal, or one is a folder above the other."""
    return one == other or one.startswith(f"{other.rstrip('/')}/") or other.startswith(f"{one.rstrip('/')}/")


def held_by(issue: IssueState, issues: Mapping[str, IssueState]) -> frozenset[str]:
    """Return the issues whose work an issue's branch contains: itself and all on which it builds."""
    chain = [issue.issue_id]
    while (below := issues[chain[-1]].builds_on) and below not in chain:
        chain.append(below)
    return frozenset(chain)


def below_of(issue: IssueState, issues: Mapping[str, IssueState]) -> IssueState | None:
    """Return the completed dependency on whose branch an issue builds; `None` without one.

    It is the dependency whose branch contains the most other dependencies; among equals, the latest.
    """
    candidates = [issues[name] for name in issue.depends_on if issues[name].done_at]
    needs = frozenset(issue.depends_on)
    return max(
        candidates, key=lambda each: (len(held_by(each, issues) & needs), each.executed_at or ""), default=None
    )


def make_lanes(pipeline_id: str, opened_by: str, run: PipelineRun) -> Iterator[Lane]:
    """Yield the lanes of a new pipeline, the planner's first."""
    thinker, doer = run.planner or run.agent, run.executor or run.agent
    yield Lane(
        id=f"{pipeline_id}-planner",
        pipeline=pipeline_id,
        agent=thinker,
        beside=() if doer == thinker else (doer,),
        opened_by=opened_by,
    )
    for number in range(1, run.executors + 1):
        yield Lane(
            id=f"{pipeline_id}-executor-{number}",
            pipeline=pipeline_id,
            agent=doer,
            opened_by=opened_by,
            one_branch=run.one_branch,
        )


def is_open(lane: Lane) -> bool:
    """Return whether a lane is open on a host."""
    return lane.task_queue != "" and (lane.workspace is None or lane.workspace.lane == lane.id)


def host_of(lane: Lane) -> str:
    """Return the host of a lane; empty while the lane is not open on any host."""
    return lane.workspace.host if lane.workspace is not None else ""


def shown_lane(lane: Lane) -> Lane:
    """Return a lane as people see it, without its workspace."""
    return lane.model_copy(update={"workspace": None, "beside": ()})
