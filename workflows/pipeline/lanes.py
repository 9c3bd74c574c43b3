"""The lanes of a pipeline: one for its planner, and one for each executor."""

from collections.abc import Iterator

from septet.contracts.lanes import Lane
from septet.pipelines.views import PipelineRun


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
