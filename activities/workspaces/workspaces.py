"""Open the workspace of a work order: mirror, clone, vault, first snapshot, frozen inputs, set-up."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pydantic import JsonValue
from temporalio import activity

from activities.host.attempts import heartbeating
from activities.host.cancellation import cancellable_thread
from activities.host.failures import OPENING_TRIES, translating_failures
from activities.host.frozen_inputs import FrozenInputs, read_frozen_inputs, write_frozen_inputs
from activities.host.host import Host
from activities.host.remote_checkpoints import keep
from activities.host.resets import error_before_reset
from activities.workspaces.base_checks import look_at_base
from activities.workspaces.full_hosts import pass_on_if_full
from activities.workspaces.workspace_setup import (
    Hold,
    expect_programs,
    forget_setup_of_removed,
    set_up_workspace,
    writing,
)
from septet.agents.clis.usable import check_usable
from septet.commands.filler import check
from septet.commands.loader import load_all, overrides
from septet.contracts.names import SETTINGS_PATH, Sessions
from septet.contracts.notification import NOTIFIES
from septet.contracts.order import IssueRequest
from septet.contracts.rework import FollowTerms
from septet.contracts.tracker import TrackedIssue
from septet.contracts.workspace import OpenWorkspace, Workspace
from septet.errors import CommandError, IssueChangedError, RepositorySettingsError
from septet.forges.choose import fork_for, refuse_without_key
from septet.forges.forge import Forge
from septet.forges.issue_for_agents import issue_for_agents
from septet.forges.issue_history import RequestCheck, TellingForge, Writers
from septet.git.commits.own_pushes import copy_pushes
from septet.git.engine.address import Address, parse_address
from septet.git.engine.configuration import write_configuration
from septet.git.engine.place import Place
from septet.git.evidence.evidence import read_base_files
from septet.git.snapshots.destroy import return_to
from septet.git.snapshots.repository_stamp import note_baseline
from septet.git.snapshots.take import seed
from septet.git.vault.vault import find, first_and_last, list_snapshots, prepare, vault_at
from septet.git.workspace.record import OrderStart, copy_record, record_of
from septet.git.workspace.workspace import open_workspace
from septet.repository_file import load_repository_settings
from septet.repository_settings import RepositorySettings
from septet.settings import Settings
from septet.trackers.choose import tracker_for
from septet.trackers.tracker import IssueMark

_CHANGED: Final = IssueChangedError.__name__.removesuffix("Error")


@dataclass(frozen=True, slots=True)
class WorkspaceActivities:
    """The workspaces of one host."""

    host: Host

    @activity.defn(name="open_workspace")
    async def open_workspace(self, request: OpenWorkspace) -> Workspace:
        """Open a work order's own workspace, and refuse unusable inputs before any agent starts.

        If this host has no free slot for an agent, it passes the work order on, a few times at most: another host
        may have a slot.

        Idempotent: this uses what an earlier attempt has made, and restarts a set-up that was cut short. Leaves
        mirror, clone, vault and inputs on disk, and what the repository's set-up makes.

        Raises:
            ApplicationError: The repository, the issue, a command or the agent cannot be used, or set-up failed.
        """
        queue = self.host.control_queue if NOTIFIES in self.host.serves else ""
        issue: dict[str, JsonValue] = {}
        with translating_failures(self.host.state.root, most_tries=OPENING_TRIES, notifies_on=queue, issue=issue):
            pass_on_if_full(self.host)
            async with heartbeating(self.host.attempts):
                run_id = request.first_run_id or activity.info().workflow_run_id or ""
                request = await _as_retried(request)
                opening = partial(self.open, request, request.work_order_id, run_id, issue=issue)
                _, workspace = await cancellable_thread(self.host.threads.network, opening)
                return workspace

    def open(
        self,
        request: OpenWorkspace,
        place_id: str,
        run_id: str,
        hold: Hold | None = None,
        *,
        issue: dict[str, JsonValue] | None = None,
    ) -> tuple[Place, Workspace]:
        """Open a workspace, or find it open, freeze its inputs, and set it up.

        Args:
            request: The repository, the issue and the agents.
            place_id: The id of its folder: the work order's id, or a lane's.
            run_id: The Temporal run of the workspace.
            hold: Takes the right to write in the workspace, for its set-up; the running attempt's when absent.
            issue: Filled with the issue as soon as it is read, for the report of a failure.

        Raises:
            SeptetError: The repository, the issue, a command or the agent cannot be used, or set-up failed.
        """
        host = self.host
        # Settings may have changed.
        write_configuration(host.settings.git_configuration, host.settings.user_git_env)
        address, forge = host.forge(request.repository)
        refuse_without_key(address, host.settings)
        fork = request.push_to or fork_for(address, host.settings)
        if fork:
            forge.expect_fork(fork)
        issue = {} if issue is None else issue
        issue.update(_issue(request, forge, host.settings))
        if request.restores:
            copy_record(host.state, request.restores.rpartition("/")[0], place_id, run_id)
        forget_setup_of_removed(host, place_id)
        place = open_workspace(
            host.state,
            address,
            OrderStart(place_id, run_id, request.base, address.beside(fork).url if fork else ""),
            env=host.settings.git_env,
            token=host.token(address),
        )
        try:
            inputs, settings = self._read_inputs(request, place, issue)
        except (CommandError, RepositorySettingsError) as error:
            began = f"this one began at {place.base_sha[:10]}"
            error.remedy += f" Commit the correction to {place.base_branch}, then start a new work order: {began}."
            raise
        write_frozen_inputs(place, inputs)
        checkpoint = self._first_snapshot(place)
        if request.restores:
            checkpoint = self._restore(place, checkpoint, request.restores)
        after_setup = set_up_workspace(host, place, settings, hold or partial(writing, host, place_id))
        expect_programs(host, place, settings.checks, "Check")
        is_fresh = not request.restores and not host.runtime.runs.of(place_id)
        look_at_base(host, place, settings, is_fresh=is_fresh, again=_opens_again(request))
        keep(host, place, claims=_opens_again(request))
        return place, self._describe(request, address, forge, place, issue, settings, after_setup or checkpoint)

    def _read_inputs(
        self, request: OpenWorkspace, place: Place, issue: dict[str, JsonValue]
    ) -> tuple[FrozenInputs, RepositorySettings]:
        """Read and check the repository's commands and settings, and check that this host has each agent."""
        own = read_base_files(place, (*overrides(), SETTINGS_PATH))
        for command in load_all(own.get):
            check(command)
        settings = load_repository_settings(own.get)
        for each in (request.agent, *request.beside):
            check_usable(each or self._default_agent(settings), self.host.agents, place.worktree)
        if fallback := self._fallback_agent(request, settings):
            check_usable(fallback, self.host.agents, place.worktree)
        files = {path: content.decode(errors="replace").encode() for path, content in own.items()}
        return FrozenInputs(issue=issue, files=files), settings

    def _default_agent(self, settings: RepositorySettings) -> str:
        return settings.agent or self.host.settings.agent

    def _fallback_agent(self, request: OpenWorkspace, settings: RepositorySettings) -> str:
        """Return the agent that takes over at a usage limit; empty if only the first agent is named."""
        chosen = request.fallback_agent or settings.fallback_agent or self.host.settings.fallback_agent or ""
        return chosen if chosen != (request.agent or self._default_agent(settings)) else ""

    def _describe(  # noqa: PLR0913, PLR0917 -- each is a part of what was opened
        self,
        request: OpenWorkspace,
        address: Address,
        forge: Forge,
        place: Place,
        issue: dict[str, JsonValue],
        settings: RepositorySettings,
        checkpoint: str,
    ) -> Workspace:
        return Workspace(
            work_order_id=request.work_order_id,
            repository=address.url,
            forge=forge.name,
            project=address.project,
            base_branch=place.base_branch,
            base_sha=place.base_sha,
            path=str(place.worktree),
            agent=request.agent or self._default_agent(settings),
            fallback_agent=self._fallback_agent(request, settings),
            sessions=sessions_of(request, settings, self.host.settings),
            follow=_follow_terms(place, issue),
            issue_number=str(issue["number"]),
            issue_title=str(issue["title"]),
            issue_url=str(issue["url"]) if issue["url"] else None,
            tracker=request.tracker,
            checkpoint=checkpoint,
            opened_by=record_of(place).first_run_id,
            fork=_fork_of(place),
            **self.host.whereabouts,
        )

    def _restore(self, place: Place, fresh: str, snapshot: str) -> str:
        """Return a fresh workspace to a lane's snapshot, and return the name of the snapshot of the result."""
        last = list_snapshots(vault_at(place), place.order_id)[-1].name
        if last != fresh:
            return last
        lane = replace(place, order_id=snapshot.rpartition("/")[0], visitor=place.order_id)
        copy_pushes(lane, place)
        options = self.host.snapshot_options("the work order leaves its pipeline")
        return_to(place, find(vault_at(place), snapshot), options)
        taken = self.host.snapshot(place, "checkpoint", f"as {snapshot} was")
        return taken.name if taken is not None else fresh

    def _first_snapshot(self, place: Place) -> str:
        prepare(place)
        if known := first_and_last(vault_at(place), place.order_id):
            return known[0].name
        snapshot = seed(place, ignored_limit_bytes=self.host.settings.ignored_limit_bytes)
        note_baseline(place, snapshot)
        return snapshot.name


def _fork_of(place: Place) -> str:
    """Return the name of the fork to which the workspace pushes; empty if it pushes to no fork."""
    return parse_address(place.fork).project if place.fork else ""


def _follow_terms(place: Place, issue: dict[str, JsonValue]) -> FollowTerms:
    """Return how far agents follow the repository's pull requests, and whether they follow this one."""
    settings = load_repository_settings(read_frozen_inputs(place).files.get)
    labels = issue.get("labels")
    return settings.pull_request.follow_terms([str(each) for each in labels] if isinstance(labels, list) else [])


def sessions_of(request: OpenWorkspace, repository: RepositorySettings, worker: Settings) -> Sessions:
    """Return whether steps share sessions: by the work order, or else the repository, or else the worker."""
    return request.sessions or repository.sessions or worker.sessions


async def _as_retried(request: OpenWorkspace) -> OpenWorkspace:
    """Return the request; drop the issue's check if a person retried a changed issue, and so has read it."""
    info = activity.info()
    run_id = info.workflow_run_id or ""
    if request.requested is None or request.first_run_id in {"", run_id}:
        return request
    error = await error_before_reset(activity.client(), info.workflow_id or "", run_id)
    return request.model_copy(update={"requested": None}) if error == _CHANGED else request


def _opens_again(request: OpenWorkspace) -> bool:
    """Return whether the workspace may be open on another host, from a dead attempt or from before a reset."""
    info = activity.info()
    return info.attempt > 1 or request.first_run_id not in {"", info.workflow_run_id}


def _issue(request: OpenWorkspace, forge: Forge, settings: Settings) -> dict[str, JsonValue]:
    """Return the issue as agents see it; without a forge's issue, its number is the empty string."""
    if request.tracker is not None:
        return _tracked(request.tracker, request.work_order_id, settings)
    if request.issue is not None:
        return _of_forge(request.issue, request.requested, forge, settings)
    return {"number": "", "title": request.title or "", "body": request.description or "", "url": ""}


def _of_forge(
    number: int, requested: IssueRequest | None, forge: Forge, settings: Settings
) -> dict[str, JsonValue]:
    """Return the issue of a forge as agents see it, if its text is still the text of the request.

    Raises:
        IssueChangedError: A person has to read the issue first.
    """
    issue = forge.issue(number)
    if not isinstance(forge, TellingForge):
        return issue_for_agents(issue, None)
    writers = Writers(forge, settings.trusted_accounts)
    if requested is not None:
        why = requested.waits_because
        if not why and requested.text_sha256 not in {"", issue.text_sha256}:
            check = RequestCheck(forge.issue_history(number), writers, settings.on_unknown_edits)
            why = check.changed_since(requested)
        if why:
            raise IssueChangedError(why)
    return issue_for_agents(issue, writers)


def _tracked(tracked: TrackedIssue, order_id: str, settings: Settings) -> dict[str, JsonValue]:
    """Return the issue of a tracker as agents see it; mark it for this work order if it has no mark."""
    tracker = tracker_for(tracked.tracker, settings)
    issue = tracker.read_issue(tracked.id)
    if tracker.find_mark(issue.id) is None:
        tracker.put_mark(issue, IssueMark(order_id, order_id))
    return issue.as_agents_see_it()
