"""Everything that a worker serves, put together once."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

from activities._room import Host
from activities._way import StepRunner
from activities.board import BoardActivities
from activities.build_plan import BuildPlan
from activities.cancel_work_order import CancelWorkOrder
from activities.classify_issue import ClassifyIssue
from activities.create_commit import CreateCommit
from activities.create_pull_request import CreatePullRequest
from activities.end_work import EndWork
from activities.finalize_json import FinalizeJson
from activities.find_plan_file import FindPlanFile
from activities.generate_branch import GenerateBranch
from activities.hosts import HostActivities
from activities.implement_plan import ImplementPlan
from activities.lanes import LaneActivities
from activities.others import Others
from activities.pipelines import PipelineActivities
from activities.pull_requests import PullRequestActivities
from activities.summarise_session import SummariseSession
from activities.sweep_host import SweepHost
from activities.workspaces import WorkspaceActivities
from septet.agents.runs.folders import Runs
from septet.agents.turns.sandbox import Sandbox, find_sandbox
from septet.agents.turns.supervisors import Supervisors
from septet.errors import SeptetError
from septet.git.address import parse_address
from septet.git.checkpoint_remote import ORIGIN
from septet.settings import Settings
from septet.state import StateDir

_log: Final = structlog.get_logger()

Activity = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """What one worker serves."""

    host: Host
    shared_activities: list[Activity]
    """On the queue of work orders: any host may open a workspace, or have a work order cancelled."""
    host_activities: list[Activity]
    """On the host's own queue: steps run where the workspace is."""
    control_activities: list[Activity]
    """On the host's control queue: it answers however busy the host is."""
    janitor_activities: list[Activity]
    """As well on the host's own queue."""
    lane_activities: list[Activity]
    """As well on the host's own queue, for pipelines."""

    @property
    def host_id(self) -> str:
        """The host's id."""
        return self.host.id

    @property
    def host_queue(self) -> str:
        """The host's own queue."""
        return self.host.task_queue

    def living_agents(self) -> list[str]:
        """Return the runs whose agents live, by name."""
        runs = Runs(self.host.state.runs)
        return [run.name for order in runs.orders() if (run := runs.living(order)) is not None]


@asynccontextmanager
async def parts_of(settings: Settings) -> AsyncIterator[Parts]:
    """Put a worker's parts together; a supervisor waits for the first agent for as long as the block lasts.

    Raises:
        SandboxError: The sandbox that the settings demand does not start here.
    """
    state = StateDir(settings.state_dir)
    state.prepare()
    sandbox = _sandbox(settings, state)
    supervisors = Supervisors(runner=state.runner if settings.runner else None)
    supervisors.prepare()
    host = Host(state.host_id(), settings, state, supervisors, sandbox)
    way = StepRunner(host)
    steps = (
        ClassifyIssue(way),
        BuildPlan(way),
        FindPlanFile(way),
        GenerateBranch(way),
        ImplementPlan(way),
        CreateCommit(way),
        CreatePullRequest(way),
    )
    finalizer = FinalizeJson(way, {step.step: step.prove for step in steps})
    host_activities: list[Activity] = [finalizer.run, *(step.run for step in steps), EndWork(way).run]
    try:
        workspaces = WorkspaceActivities(host).open_workspace
        hosts, board = HostActivities(host), BoardActivities()
        asked_by_board = (board.find_closed, board.find_waiting)
        others = Others(settings).look_at_others
        look = PullRequestActivities(host).look_at_pull_request
        lanes, pipelines = LaneActivities(host), PipelineActivities(host)
        kept = (pipelines.note_results, pipelines.write_report)
        yield Parts(
            host,
            [
                *(workspaces, hosts.move_workspace, CancelWorkOrder().run, look, others, *asked_by_board),
                *(pipelines.read_issues, lanes.enter_lane, *kept),
            ],
            host_activities,
            [hosts.probe_host, look],
            [SweepHost(host).run],
            [workspaces, lanes.enter_lane, lanes.close_lanes, SummariseSession(host).run, *kept],
        )
    finally:
        supervisors.close()


def _sandbox(settings: Settings, state: StateDir) -> Sandbox:
    """Return what confines agents here, and say it where nothing does."""
    state.api_token()  # made before any agent starts, for none is to read it
    hidden = (*state.hidden, state.api_token_file, *_kept_elsewhere(settings, state))
    sandbox = find_sandbox(settings.sandbox, settings.git_env, read_only=(state.mirrors,), hidden=hidden)
    if not sandbox.confines:
        _log.warning("unconfined", reason=sandbox.reason, remedy=sandbox.remedy)
    return sandbox


def _kept_elsewhere(settings: Settings, state: StateDir) -> Iterator[Path]:
    """Give the folder of the checkpoint remote, where it is one that agents can do without."""
    if settings.checkpoint_remote in {None, ORIGIN}:
        return
    with suppress(SeptetError, OSError):  # what is wrong with it each checkpoint's warning says
        folder = parse_address(settings.checkpoint_remote or "", home=Path.home()).path
        if folder is not None and not state.root.resolve().is_relative_to(folder.resolve()):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            yield folder
