"""Open a work order's workspace: mirror, clone, vault, first snapshot, frozen inputs, set-up."""

from dataclasses import dataclass, replace
from functools import partial

from pydantic import JsonValue
from temporalio import activity

from activities.host.cancellation import cancellable_thread, error_before_reset
from activities.host.failures import OPENING_TRIES
from activities.host.frozen_inputs import FrozenInputs, read_issue, write_frozen_inputs
from activities.host.host import Host
from activities.host.remote_checkpoints import keep
from activities.workspaces.base_checks import look_at_base
from activities.workspaces.workspace_setup import (
    Hold,
    expect_programs,
    forget_setup_of_removed,
    set_up_workspace,
    writing,
)
from septet.agents.clis.registry import check_usable
from septet.commands.command import load_all, overrides
from septet.commands.placeholders import check
from septet.contracts.names import SETTINGS_PATH, Sessions
from septet.contracts.task import NOTIFIES
from septet.contracts.workspace import OpenWorkspace, Workspace
from septet.errors import CommandError, IssueChangedError, RepositorySettingsError
from septet.forges.choose import fork_for, refuse_without_key
from septet.forges.forge import Forge
from septet.git.commits.push import copy_pushes
from septet.git.engine.address import Address, parse_address
from septet.git.engine.configuration import write_configuration
from septet.git.engine.objects import read_base_files
from septet.git.engine.place import Place, record_of
from septet.git.snapshots.destroy import return_to
from septet.git.snapshots.repository_stamp import note_baseline
from septet.git.snapshots.take import seed
from septet.git.vault.vault import find, first_and_last, list_snapshots, prepare, vault_at
from septet.git.workspace.workspace import OrderStart, copy_record, open_workspace
from septet.repository_file import load_repository_settings
from septet.repository_settings import RepositorySettings


@dataclass(frozen=True, slots=True)
class Choices:
    """The agents and the use of sessions, as the work order, the repository or the worker chose."""

    request: OpenWorkspace
    repository: RepositorySettings
    agent: str
    fallback_agent: str
    """The agent that takes over at a usage limit; empty for none."""
    sessions: Sessions


@dataclass(frozen=True, slots=True)
class WorkspaceActivities:
    """Opens workspaces on one host."""

    host: Host

    @activity.defn(name="open_workspace")
    async def open_workspace(self, request: OpenWorkspace) -> Workspace:
        """Open a work order's workspace, and refuse unusable inputs before any agent starts.

        Idempotent: this uses the results of an earlier attempt, and restarts an interrupted set-up. A host without
        a free slot for an agent leaves the work order to other hosts, a few times at most. Leaves mirror, clone,
        vault and inputs on disk, and the files of the repository's set-up.

        Raises:
            ApplicationError: The repository, the issue, a command or the agent cannot be used, or set-up failed.
        """
        queue = self.host.control_queue if NOTIFIES in self.host.serves else ""
        issue: dict[str, JsonValue] = {}
        async with self.host.working(most_tries=OPENING_TRIES, notifies_on=queue, issue=issue):
            self.host.pass_on_if_full()
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
        """Open a workspace if needed, save its inputs, set it up, and return its folders and its description.

        Args:
            place_id: The id of the workspace's folder: the work order's id, or a lane's id.
            run_id: The Temporal run of the workspace.
            hold: Takes the right to write in the workspace for the set-up; by default, the running attempt takes
                it.
            issue: A dictionary that this fills with the issue, for the report of a failure.

        Raises:
            SeptetError: The repository, the issue, a command or the agent cannot be used, or set-up failed.
        """
        host = self.host
        # Settings may have changed.
        write_configuration(host.settings.git_configuration, host.settings.user_git_env)
        address, forge = host.forges.of(request.repository)
        refuse_without_key(address, host.settings)
        fork = request.push_to or fork_for(address, host.settings)
        if fork:
            forge.expect_fork(fork)
        issue = {} if issue is None else issue
        issue.update(read_issue(request, forge, host.settings))
        if request.restores:
            copy_record(host.state, request.restores.rpartition("/")[0], place_id, run_id)
        forget_setup_of_removed(host, place_id)
        place = open_workspace(
            host.state,
            address,
            OrderStart(place_id, run_id, request.base, address.beside(fork).url if fork else ""),
            env=host.settings.git_env,
            token=host.forges.token(address),
        )
        try:
            inputs, choices = self._read_inputs(request, place, issue)
        except (CommandError, RepositorySettingsError) as error:
            began = f"this one began at {place.base_sha[:10]}"
            error.remedy += f" Commit the correction to {place.base_branch}, then start a new work order: {began}."
            raise
        write_frozen_inputs(place, inputs)
        settings = choices.repository
        checkpoint = self._first_snapshot(place)
        if request.restores:
            checkpoint = self._restore(place, checkpoint, request.restores)
        after_setup = set_up_workspace(host, place, settings, hold or partial(writing, host, place_id))
        expect_programs(host, place, settings.checks, "Check")
        is_fresh = not request.restores and not host.runs.of(place_id)
        look_at_base(host, place, settings, is_fresh=is_fresh, again=_opens_again(request))
        keep(host, place, claims=_opens_again(request))
        return place, self._describe(choices, (address, forge), place, issue, after_setup or checkpoint)

    def _read_inputs(
        self, request: OpenWorkspace, place: Place, issue: dict[str, JsonValue]
    ) -> tuple[FrozenInputs, Choices]:
        """Read and check the repository's commands and settings, and check that this host has each agent."""
        own = read_base_files(place, (*overrides(), SETTINGS_PATH))
        for command in load_all(own.get):
            check(command)
        settings, worker = load_repository_settings(own.get), self.host.settings
        agents = [each or settings.agent or worker.agent for each in (request.agent, *request.beside)]
        fallback = request.fallback_agent or settings.fallback_agent or worker.fallback_agent or ""
        fallback = fallback if fallback != agents[0] else ""
        sessions = request.sessions or settings.sessions or worker.sessions
        for each in filter(None, (*agents, fallback)):
            check_usable(each, self.host.agents, place.worktree)
        files = {path: content.decode(errors="replace").encode() for path, content in own.items()}
        return FrozenInputs(issue=issue, files=files), Choices(request, settings, agents[0], fallback, sessions)

    def _describe(
        self,
        choices: Choices,
        origin: tuple[Address, Forge],
        place: Place,
        issue: dict[str, JsonValue],
        checkpoint: str,
    ) -> Workspace:
        request, (address, forge) = choices.request, origin
        labels = issue.get("labels")
        return Workspace(
            work_order_id=request.work_order_id,
            repository=address.url,
            forge=forge.name,
            project=address.project,
            base_branch=place.base_branch,
            base_sha=place.base_sha,
            path=str(place.worktree),
            agent=choices.agent,
            fallback_agent=choices.fallback_agent,
            sessions=choices.sessions,
            follow=choices.repository.pull_request.follow_terms(
                [str(each) for each in labels] if isinstance(labels, list) else []
            ),
            issue_number=str(issue["number"]),
            issue_title=str(issue["title"]),
            issue_url=str(issue["url"]) if issue["url"] else None,
            tracker=request.tracker,
            checkpoint=checkpoint,
            opened_by=record_of(place).first_run_id,
            fork=parse_address(place.fork).project if place.fork else "",
            **self.host.whereabouts,
        )

    def _restore(self, place: Place, fresh: str, snapshot: str) -> str:
        """Restore a lane's snapshot in a new workspace, and return the name of the checkpoint taken there."""
        last = list_snapshots(vault_at(place), place.order_id)[-1].name
        if last != fresh:
            return last
        lane = replace(place, order_id=snapshot.rpartition("/")[0], visitor=place.order_id)
        copy_pushes(lane, place)
        options = self.host.snapshots.options("the work order leaves its pipeline")
        return_to(place, find(vault_at(place), snapshot), options)
        taken = self.host.snapshots.take(place, "checkpoint", f"as {snapshot} was")
        return taken.name if taken is not None else fresh

    def _first_snapshot(self, place: Place) -> str:
        prepare(place)
        if known := first_and_last(vault_at(place), place.order_id):
            return known[0].name
        snapshot = seed(place, ignored_limit_bytes=self.host.settings.ignored_limit_bytes)
        note_baseline(place, snapshot)
        return snapshot.name


async def _as_retried(request: OpenWorkspace) -> OpenWorkspace:
    """Return the request; if this is a retry after `IssueChangedError`, leave out the check that raised it."""
    info = activity.info()
    run_id = info.workflow_run_id or ""
    if request.requested is None or request.first_run_id in {"", run_id}:
        return request
    error = await error_before_reset(activity.client(), info.workflow_id or "", run_id)
    return (
        request.model_copy(update={"requested": None})
        if error == IssueChangedError.__name__.removesuffix("Error")
        else request
    )


def _opens_again(request: OpenWorkspace) -> bool:
    """Return whether an earlier attempt, perhaps before a reset, could have opened this workspace elsewhere."""
    info = activity.info()
    return info.attempt > 1 or request.first_run_id not in {"", info.workflow_run_id}
