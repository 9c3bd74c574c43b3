"""The parts of a worker: its host, and the activities of each of its queues."""

import platform
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

from activities.board.board import BoardActivities, CancelWorkOrder, Others
from activities.board.pull_requests import PullRequestActivities
from activities.host.failures import DISK_WAITS
from activities.host.host import Accounts, Host
from activities.intake.comment_commands import CommentActivities, Decide, decide_nothing
from activities.intake.issues import IntakeActivities, IntakesOf, no_intakes
from activities.intake.trackers import TrackerActivities
from activities.outgoing.send_notification import SendNotification
from activities.runner.prepare_rework import PrepareRework
from activities.runner.step_activities import StepActivities
from activities.runner.step_runner import StepRunner
from activities.turns.account_archive import read_ended_account
from activities.turns.logins import check_logins
from activities.turns.summarise_session import SummariseSession
from activities.workspaces.hosts import HostActivities, SweepHost
from activities.workspaces.pipelines import LaneActivities, PipelineActivities
from activities.workspaces.workspaces import WorkspaceActivities
from septet.agents.guest.description import World
from septet.agents.guest.network import parse_way_out
from septet.agents.guest.paths import parse_named_paths
from septet.agents.guest.system_calls import refused_system_calls
from septet.agents.runs.folders import Run
from septet.agents.sandbox.sandbox import Sandbox, find_sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.contracts.task import NOTIFIES
from septet.contracts.workspace import DELIVERS_CANCELS, END_WORK, PULL_REQUESTS
from septet.errors import LockHeldError, SeptetError
from septet.forges.http.pauses import PAUSES
from septet.git.checkpoints.checkpoint_remote import ORIGIN
from septet.git.engine.address import parse_address
from septet.git.engine.configuration import ELSEWHERE, write_configuration
from septet.settings import Settings
from septet.state import StateDir
from septet.system.masking import hide
from septet.system.threads import ThreadPools
from workers.slots import MORE_OPEN_FILES, agents_at_once, allow_open_files

_log: Final = structlog.get_logger()

Activity = Callable[..., Any]
_DEFINITION: Final = "__temporal_activity_definition"
"""The attribute in which the SDK records an activity's name."""
_FEWEST_OPENINGS: Final = 100
_OPENINGS_PER_AGENT: Final = 5


@dataclass(frozen=True, slots=True)
class Parts:
    """A worker's host, and the activities of each queue by name."""

    host: Host
    shared: Mapping[str, Activity]
    """The activities on the queue of work orders, which any host can run, such as opening a workspace."""
    own: Mapping[str, Activity]
    """The activities on the host's own queue. A step, for example, runs on the host that has the workspace."""
    control: Mapping[str, Activity]

    def living_agents(self) -> list[Run]:
        """Return the runs whose agents are alive."""
        runs = self.host.runs
        held = (order for order in runs.orders() if runs.is_held(order))
        return [run for order in held if (run := runs.living(order)) is not None]


@asynccontextmanager
async def parts_of(
    settings: Settings,
    serves: tuple[str, ...] = (END_WORK, PULL_REQUESTS, DELIVERS_CANCELS),
    decide: Decide = decide_nothing,
    accounts: Accounts | None = None,
    intakes_of: IntakesOf = no_intakes,
) -> AsyncIterator[Parts]:
    """Build a worker's parts and yield them; while the block runs, one supervisor is ready for the next agent.

    Args:
        serves: What this host can do and older versions cannot; the host's workspaces list these services.
        accounts: The budget accounts, in which room is reserved before an agent starts.

    Raises:
        SandboxError: The sandbox that the settings require does not start here.
        GitError: git cannot read the user's configuration.
        AgentMissingError, InvalidInputError: A further login of an agent cannot be used.
    """
    state = StateDir(settings.state_dir)
    state.prepare()
    PAUSES.folder = state.forge_pauses
    DISK_WAITS.longest_seconds = settings.disk_wait_seconds
    for name in write_configuration(settings.git_configuration, settings.user_git_env):
        _log.warning("git_setting_left_out", name=name, remedy=ELSEWHERE)
    sandbox = _sandbox(settings, state)
    supervisors = Supervisors(runner=state.runner if settings.runner else None)
    supervisors.prepare()
    most = agents_at_once(settings)
    if missing := allow_open_files(most):
        _log.warning("few_open_files", missing=missing, agents=most, remedy=MORE_OPEN_FILES)
    threads = ThreadPools.sized(most, openings_at_once(settings))
    serves = (*serves, NOTIFIES) if settings.notify_url is not None else serves
    host = Host(
        state.host_id(), settings, state, supervisors, sandbox, threads, serves, max_agents=most, accounts=accounts
    )
    try:
        check_logins(host)
        with suppress(OSError, LockHeldError):  # the next start of an agent tries it again
            host.homes.logins.take_all_back()
        with threads.open():
            yield Parts(host, _shared(host, decide, intakes_of), _own(host), _control(host))
    finally:
        host.beside.end()
        supervisors.close()


def openings_at_once(settings: Settings) -> int:
    """Return how many activities from the queue of work orders one worker runs at a time at most.

    While some of these activities wait for a remote that hangs, there must be room for others.
    """
    return max(_FEWEST_OPENINGS, _OPENINGS_PER_AGENT * agents_at_once(settings))


def _shared(host: Host, decide: Decide, intakes_of: IntakesOf) -> Mapping[str, Activity]:
    hosts, board, lanes, pipelines = (
        HostActivities(host),
        BoardActivities(),
        LaneActivities(host),
        PipelineActivities(host),
    )
    intake, comments = IntakeActivities(host, intakes_of), CommentActivities(host, decide)
    trackers = TrackerActivities(host, decide)
    return _by_name(
        WorkspaceActivities(host).open_workspace,
        hosts.move_workspace,
        CancelWorkOrder().run,
        PullRequestActivities(host).look_at_pull_request,
        Others(host.settings).look_at_others,
        read_ended_account,
        board.find_closed,
        board.find_waiting,
        pipelines.read_issues,
        pipelines.note_results,
        pipelines.write_report,
        lanes.enter_lane,
        intake.find_issues,
        intake.claim_issue,
        comments.check_commenter,
        comments.obey_comment,
        comments.answer_comment,
        trackers.tell_session,
        trackers.take_tracked_issue,
        trackers.obey_prompt,
    )


def _own(host: Host) -> Mapping[str, Activity]:
    steps, lanes, pipelines = StepActivities(StepRunner(host)), LaneActivities(host), PipelineActivities(host)
    return _by_name(
        steps.classify_issue,
        steps.build_plan,
        steps.find_plan_file,
        steps.generate_branch,
        steps.implement_plan,
        steps.create_commit,
        steps.create_pull_request,
        PrepareRework(host).run,
        steps.rework,
        steps.read_outgoing,
        steps.finalize_json,
        steps.end_work,
        SweepHost(host).run,
        WorkspaceActivities(host).open_workspace,
        lanes.enter_lane,
        lanes.close_lanes,
        SummariseSession(host).run,
        pipelines.note_results,
        pipelines.write_report,
    )


def _control(host: Host) -> Mapping[str, Activity]:
    hosts = HostActivities(host)
    return _by_name(
        hosts.probe_host,
        hosts.check_agent,
        hosts.deliver_cancel,
        SendNotification(host).run,
        PullRequestActivities(host).look_at_pull_request,
        StepActivities(StepRunner(host)).end_work,
    )


def _by_name(*activities: Activity) -> Mapping[str, Activity]:
    return {getattr(each, _DEFINITION).name: each for each in activities}


def _sandbox(settings: Settings, state: StateDir) -> Sandbox:
    """Return the sandbox of this host's agents; log a warning if the agents run unconfined."""
    hide((state.api_token(),))  # made before any agent starts: no agent may read it
    home = settings.home
    named_paths = parse_named_paths(settings.guest_paths, home)
    covered = (state.root, *_checkpoint_folders(settings, state))
    way_out = parse_way_out(
        settings.guest_hosts,
        settings.guest_network,
        settings.environ,
        settings.model_requests,
        settings.setup_hosts,
    )
    world = World(home, named_paths, covered, way_out)
    sandbox = find_sandbox(settings.sandbox, settings.git_env, world)
    for each in named_paths if sandbox.confines else ():
        _log.warning("guest_path", opens=each.opening(home))
    if not sandbox.confines:
        _log.warning("unconfined", reason=sandbox.reason, remedy=sandbox.remedy)
    if sandbox.confines and not refused_system_calls():
        _log.warning("system_calls_not_refused", machine=platform.machine())
    if sandbox.remains_root:
        _log.warning("guests_remain_root", reason=sandbox.remains_root)
    return sandbox


def _checkpoint_folders(settings: Settings, state: StateDir) -> Iterator[Path]:
    """Yield the checkpoint remote's folder, for the sandbox to hide, unless it contains the state directory."""
    if settings.checkpoint_remote in {None, ORIGIN}:
        return
    with suppress(SeptetError, OSError):  # each checkpoint warns of a wrong address
        folder = parse_address(settings.checkpoint_remote or "", home=Path.home()).path
        if folder is not None and not state.root.resolve().is_relative_to(folder.resolve()):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            yield folder
