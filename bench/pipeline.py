"""A pipeline of many issues beside the same issues as single work orders: plans take 1 s, executions 2 s."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from bench.figure import Figure
from bench.machine import ROOT
from bench.meter import read_actions
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import SEPTET, Stage, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status, Step
from septet.contracts.order import WorkOrderInput
from septet.pipelines.inputs import PipelineInput, PipelineIssue
from septet.pipelines.views import IssueStatus, PipelineView

EXECUTORS: Final = ((1, 1.1), (4, 1.2))
"""The numbers of executors, each with the most time as a multiple of the critical path."""
ACTIONS_PER_ISSUE: Final = 35.0
_ACTIONS_NOTE: Final = "of the pipeline and its work orders, which have no budget, to the end of the last one"
_SCRIPT: Final = {"steps": {"build_plan": {"delay_seconds": 1}, "implement_plan": {"delay_seconds": 2}}}
_FILES: Final = 100
_BESIDE: Final = "work orders one by one"
_NOTE: Final = (
    "plans one after the other, each execution as soon as its plan and an executor are there, all as long as"
    " one by one: a plan from the start to the step generate_branch, an execution from there to the close"
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The seconds of an issue as a single work order."""

    plan: float
    """The seconds from its start to the point at which an executor would take over."""
    execution: float
    """The seconds from there to its end: branch, implementation, commit, pull request, and all gaps."""


def measure(pace: Pace) -> list[Figure]:
    """Measure single work orders, then the same issues in pipelines."""
    return asyncio.run(_measured(pace))


def critical_path(stretches: Sequence[Stretch], executors: int) -> float:
    """Return the seconds of all issues without any loss in between.

    The plans follow each other; each is executed as soon as it exists and an executor is free. With one executor
    and executions longer than plans, the path is the first plan and all executions.
    """
    planned, free = 0.0, [0.0] * executors
    for stretch in stretches:
        planned += stretch.plan
        free = sorted(free)
        free[0] = max(free[0], planned) + stretch.execution
    return max(free)


async def _measured(pace: Pace) -> list[Figure]:
    issues = [
        PipelineIssue(id=f"i{number}", title=f"Say thing {number}", body=_body(number))
        for number in range(pace.times(20, 10))
    ]
    async with stage() as on:
        origin = await asyncio.to_thread(
            make_repository, on.settings.state_dir / "origin.git", _FILES, pace.seed, on.settings.git_env
        )
        async with worker(on, _environ(on)):
            await _one_by_one(on.client, origin, issues[:1], "warm")
            stretches = await _one_by_one(on.client, origin, issues, "alone")
            figures = []
            for executors, target in EXECUTORS:
                before = await read_actions(on.metrics)
                seconds = await _pipeline(on.client, origin, issues, executors)
                actions = (await read_actions(on.metrics) - before).total()
                figures.append(_figure(stretches, executors, target, seconds))
                named = f"Actions of {len(issues)} issues, {executors} at once"
                figures.append(Figure(named, actions, "", ACTIONS_PER_ISSUE * len(issues), note=_ACTIONS_NOTE))
            return figures


def _figure(stretches: Sequence[Stretch], executors: int, target: float, seconds: float) -> Figure:
    path = critical_path(stretches, executors)
    named = f"{executors} executor" if executors == 1 else f"{executors} executors, disjoint files"
    return Figure(
        f"{len(stretches)} issues, {named}",
        seconds,
        "s",
        target * path,
        baseline=sum(stretch.plan + stretch.execution for stretch in stretches),
        beside=_BESIDE,
        note=f"{seconds / path:.2f} times the critical path of {path:.1f} s ({target} allowed): {_NOTE}",
    )


def _body(number: int) -> str:
    return f"Write `thing {number}` into `things/{number:02}.txt`."


def _environ(on: Stage) -> dict[str, str]:
    """Return the worker's environment, with a scripted agent that takes its time over two steps."""
    scripted = on.settings.state_dir.parent / "scripted"  # in a folder that guests may read
    scripted.mkdir()
    scenario = scripted / "scenario.json"
    scenario.write_text(json.dumps(_SCRIPT), encoding="utf-8")
    seen = (ROOT, sys.prefix, sys.base_prefix, f"{scripted}:rw")
    return {
        **on.environ,
        "SEPTET_GUEST_PATHS": ",".join(map(str, seen)),
        "SEPTET_SCRIPTED_PATH": str(SEPTET.with_name("septet-scripted-agent")),
        "SEPTET_SCRIPTED_SCENARIO": str(scenario),
        "SEPTET_SCRIPTED_HOME": str(scripted / "home"),
    }


async def _one_by_one(client: Client, origin: Path, issues: Sequence[PipelineIssue], name: str) -> list[Stretch]:
    orders, stretches = WorkOrders(client), []
    for issue in issues:
        order_id = f"wo-{name}-{issue.id}"
        order = WorkOrderInput(repository=str(origin), title=issue.title, description=issue.body, agent="scripted")
        await orders.start(order, order_id)
        task = await orders.wait(order_id)
        if task.status is not Status.COMPLETED:
            raise RuntimeError(f"{order_id} is {task.status.value}: {task.error}")
        stretches.append(await _stretch(client, order_id))
    return stretches


async def _stretch(client: Client, order_id: str) -> Stretch:
    """Return the seconds of a work order's two parts, by its history."""
    events = [event async for event in client.get_workflow_handle(order_id).fetch_history_events()]
    (over,) = (
        _moment(event)
        for event in events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
        and event.activity_task_scheduled_event_attributes.activity_type.name == Step.GENERATE_BRANCH.value
    )
    return Stretch(over - _moment(events[0]), _moment(events[-1]) - over)


async def _pipeline(client: Client, origin: Path, issues: Sequence[PipelineIssue], executors: int) -> float:
    """Return the seconds of a pipeline from its start to its close, after its report and its agents' end."""
    given = PipelineInput(repository=str(origin), issues=tuple(issues), agent="scripted", executors=executors)
    handle = await client.start_workflow(
        "Pipeline", given, id=f"pl-{executors}", task_queue="septet", result_type=PipelineView
    )
    view = await handle.result()
    if lost := [issue for issue in view.issues if issue.status is not IssueStatus.COMPLETED]:
        raise RuntimeError(f"{lost[0].order_id} is {lost[0].status.value}: {lost[0].error}")
    described = await handle.describe()
    if described.close_time is None:
        raise RuntimeError(f"{view.id} has a result and is not closed.")
    return (described.close_time - described.start_time).total_seconds()


def _moment(event: Any) -> float:  # noqa: ANN401 -- protobuf's message
    return float(event.event_time.ToMicroseconds()) / 1_000_000
