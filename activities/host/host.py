"""The host that an activity works on: its settings, its folders, its agents, its forges and its snapshots."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import structlog

from activities.host.accounts import Accounts
from activities.host.attempts import RunningAttempts
from activities.host.rescues import note_rescue
from septet.agents.clis.adapter import Adapter, Machine
from septet.agents.clis.registry import adapter_for
from septet.agents.homes.home import Homes
from septet.agents.homes.logins import Logins
from septet.agents.runs.folders import Runs
from septet.agents.runs.sessions import SessionFolder
from septet.agents.sandbox.guest_run import GuestRunner
from septet.agents.sandbox.runner_connection import RUNNER_LOCK
from septet.agents.sandbox.sandbox import Sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.follow import Pace
from septet.agents.turns.request import AgentRuntime
from septet.budgets.held_turns import HeldTurns
from septet.contracts.facts import Rescue
from septet.contracts.names import CONTROL
from septet.contracts.workspace import DELIVERS_CANCELS, END_WORK, PULL_REQUESTS
from septet.costs.note_files import NoteFiles
from septet.errors import SeptetError, SnapshotError
from septet.forges.choose import forge_for, token_for
from septet.forges.forge import Forge
from septet.git.engine.address import Address, parse_address
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.snapshots.destroy import disarm_repository, own_repository, return_to
from septet.git.snapshots.scan import WorktreeScan, scan
from septet.git.snapshots.take import take
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.vault import find, first_and_last, vault_at
from septet.git.workspace.mirror import mend_mirror
from septet.git.workspace.record import find_place
from septet.settings import MIB, Settings
from septet.state import StateDir
from septet.system.text import name_some
from septet.system.threads import Beside, ThreadPools

_LEFT: Final = "an agent or a check changed what git runs or follows; it was restored to what set-up left"
"""The text of the rescue and of the step's warning."""
_SHOWN_PATHS: Final = 5

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Host:
    """A worker's host."""

    id: str
    settings: Settings
    state: StateDir
    supervisors: Supervisors
    sandbox: Sandbox = field(default_factory=Sandbox)
    """The sandbox that confines its agents."""
    threads: ThreadPools = field(default_factory=lambda: ThreadPools.sized(1, 1))
    """The threads that run its blocking work."""
    serves: tuple[str, ...] = (END_WORK, PULL_REQUESTS, DELIVERS_CANCELS)
    """The abilities that its workspaces list; some need a server that supports them."""
    beside: Beside = field(default_factory=Beside)
    """The tasks that it runs beside the work orders."""
    attempts: RunningAttempts = field(default_factory=RunningAttempts)
    """The attempts that this process runs."""
    pace: Pace = field(default_factory=Pace)
    """How its agents are followed."""
    max_agents: int | None = None
    """How many agents each of its workers runs at a time; `None` if agents are not counted."""
    accounts: Accounts | None = None
    """The budgets that have to grant room before an agent starts; without them, nothing is limited or counted."""

    @property
    def queue_prefix(self) -> str:
        """The common prefix of all host queues that belong to the same queue of work orders."""
        return f"{self.settings.task_queue}-host-"

    @property
    def task_queue(self) -> str:
        """The queue that only this host's workers serve."""
        return f"{self.queue_prefix}{self.id}"

    @property
    def control_queue(self) -> str:
        """The queue on which this host answers even if it is busy."""
        return f"{self.task_queue}{CONTROL}"

    @property
    def is_full(self) -> bool:
        """Whether this worker has no free slot for an agent."""
        return self.max_agents is not None and self.attempts.count(self.task_queue) >= self.max_agents

    @property
    def hears_pushes(self) -> bool:
        """Whether its server pushes cancels to it."""
        return DELIVERS_CANCELS not in self.serves

    @property
    def whereabouts(self) -> dict[str, Any]:
        """The fields of a workspace that name its host, its queues, and the settings for requests to its host."""
        return {
            "host": self.id,
            "task_queue": self.task_queue,
            "control_queue": self.control_queue,
            "serves": self.serves,
            "probe_seconds": self.settings.probe_seconds,
            "orphan_limit_seconds": self.settings.orphan_limit_seconds,
            "kept": self.settings.checkpoint_remote is not None,
        }

    @property
    def runtime(self) -> AgentRuntime:
        """The runtime with which this host runs its agents."""
        orphan_limit = self.settings.orphan_limit_seconds
        return AgentRuntime(
            Runs(self.state.runs, self.runner_lock),
            self.supervisors,
            self.agents,
            orphan_limit,
            pace=self.pace,
            sandbox=self.sandbox,
            warm=self.settings.warm_agents,
            homes=self.homes,
            resources=self.settings.guest_resources,
        )

    @property
    def held_turns(self) -> HeldTurns:
        """The host's notes of turns that hold room in a budget."""
        return HeldTurns(self.state.held_turns)

    @property
    def cost_notes(self) -> NoteFiles:
        """The costs of its agents that were not reported yet."""
        return NoteFiles(self.state.cost_notes)

    @property
    def homes(self) -> Homes:
        """The homes of its work orders."""
        return Homes(self.state.homes, Logins(self.state.logins))

    def sessions(self, place: Place, adapter: Adapter) -> SessionFolder | None:
        """Return an agent's session folder in a work order's home; `None` (the user's own) without a sandbox."""
        if not self.sandbox.confines:
            return None
        return self.homes.of(place.order_id, adapter, self.agents).sessions

    def guests(self, place: Place, folder: Path, writer_lock: int) -> GuestRunner:
        """Return a runner of a repository's own programs, for an attempt that holds the writer's lock.

        Args:
            place: The place where they run.
            folder: The folder of their records.
            writer_lock: The descriptor of the writer's lock.
        """
        runtime = self.runtime
        return GuestRunner(
            runtime.runs, runtime.supervisors, self.sandbox, folder, place.objects, writer_lock, runtime.resources
        )

    @property
    def runner_lock(self) -> Path | None:
        """The lock of the runner that starts this host's agents; `None` if the worker starts them."""
        return self.state.runner / RUNNER_LOCK if self.settings.runner else None

    @property
    def agents(self) -> Machine:
        """The facts about this machine that adapters get."""
        settings = self.settings
        environ = {"SEPTET_SCRIPTED_HOME": str(self.state.agent_homes), **settings.environ}
        return Machine(environ, settings.agent_programs, sandboxed=settings.sandboxed or self.sandbox.confines)

    def keeps_process(self, agent: str) -> bool:
        """Return whether an agent's process can serve several turns here; `False` for an empty name."""
        return bool(agent) and self.settings.warm_agents and adapter_for(agent).capabilities.input_stream

    def place(self, order_id: str) -> Place:
        """Return the place of a work order that was opened here.

        Raises:
            NotFoundError: The work order was opened on another host.
        """
        place = find_place(self.state, order_id, self.settings.git_env)
        settings = self.settings
        return replace(
            place,
            tree_limit_bytes=settings.tree_limit_mib * MIB,
            file_limit_bytes=settings.file_limit_bytes,
        )

    def forge(self, repository: str) -> tuple[Address, Forge]:
        """Return a repository's address, and the forge of its issues and pull requests.

        Raises:
            InvalidInputError: `repository` is no address, or its host has no forge.
        """
        address = parse_address(repository, home=Path.home())
        return address, forge_for(address, self.settings)

    def token(self, address: Address) -> str | None:
        """Return the worker's key for an https origin on a forge that is known; no agent ever sees it."""
        return token_for(address, self.settings)

    def token_for(self, repository: str) -> str | None:
        """Return the worker's key for a repository."""
        return self.token(parse_address(repository, home=Path.home()))

    def scan(self, place: Place) -> WorktreeScan:
        """Scan a worktree to which no process writes any more.

        Raises:
            SnapshotError: The worktree cannot be read, or is larger than its limit.
        """
        return scan(place, ignored_limit_bytes=self.settings.ignored_limit_bytes)

    def mend_mirror(self, place: Place) -> None:
        """Fetch what the work order's mirror lacks from its origin.

        Raises:
            SeptetError: The origin was not reached or refused, or lacks the commit that the work order began from.
        """
        remote = Remote(place.origin, self.settings.git_env, self.token_for(place.origin))
        mend_mirror(place.mirror, remote, place.base_sha)

    def snapshot(
        self,
        place: Place,
        kind: Literal["checkpoint", "rescue"],
        reason: str,
        step: str | None = None,
        last_scan: WorktreeScan | None = None,
    ) -> Snapshot | None:
        """Take a snapshot within this worker's limit on ignored files; `last_scan` as `take` has it."""
        return take(place, kind, self.snapshot_options(reason, step), last_scan)

    def checkpoint_after_guest(
        self, place: Place, reason: str, step: str, last_scan: WorktreeScan | None = None
    ) -> tuple[Snapshot | None, tuple[str, ...]]:
        """Restore the engine's `.git` and take a checkpoint; return the checkpoint, and warnings about `.git`.

        `last_scan` as `take` has it.
        """
        told = self.own_repository(place, step)
        return self.snapshot(place, "checkpoint", reason, step, None if told else last_scan), told

    def checkpoint_once(self, place: Place, reason: str) -> Snapshot:
        """Take a checkpoint, or return the last snapshot if it is no rescue and already holds the worktree."""
        known = first_and_last(vault_at(place), place.order_id)
        last = known[1] if known and known[1].kind != "rescue" else None
        taken = take(place, "checkpoint", self.snapshot_options(reason, equal_to=last))
        if (snapshot := taken or last) is None:
            raise SnapshotError(f"No snapshot of {place.worktree} was recorded.")
        return snapshot

    def rescue(self, place: Place, reason: str, step: str) -> Rescue | None:
        """Take a rescue, then restore the engine's `.git`; return `None` if there is nothing to keep."""
        try:
            snapshot = self.snapshot(place, "rescue", reason, step)
        except SnapshotError:
            with suppress(OSError):
                disarm_repository(place)
            raise
        rescue = self.note_rescue(place, snapshot)
        self.own_repository(place, step, snapshot)
        return rescue

    def own_repository(self, place: Place, step: str, secured_by: Snapshot | None = None) -> tuple[str, ...]:
        """Restore the engine's `.git` after a guest, and return warnings about it.

        If the disk fails, the step still counts: the end of the next guest, or a retry, restores `.git`.
        """
        options = self.snapshot_options(_LEFT, step, secured_by)
        try:
            paths, rescue = own_repository(place, options)
        except (SeptetError, OSError) as error:
            _log.warning("repository_not_owned", step=step, error=str(error))
            with suppress(OSError):
                disarm_repository(place)
            return ()
        self.note_rescue(place, rescue)
        if not paths:
            return ()
        _log.warning("repository_owned", step=step, paths=paths[:_SHOWN_PATHS])
        return (f"{_LEFT}: {name_some(paths, _SHOWN_PATHS)}",)

    def rescue_once(self, place: Place, reason: str, step: str) -> Rescue | None:
        """Take a rescue; return `None` if there is nothing to keep that the last snapshot does not hold."""
        known = first_and_last(vault_at(place), place.order_id)
        snapshot = take(place, "rescue", self.snapshot_options(reason, step, known[1] if known else None))
        return self.note_rescue(place, snapshot)

    def return_to(self, place: Place, checkpoint: str, reason: str, step: str) -> Rescue | None:
        """Return the worktree to a checkpoint, and return the rescue of its state before.

        Raises:
            SnapshotError: The worktree could not be kept first; then nothing was changed.
        """
        snapshot = return_to(place, find(vault_at(place), checkpoint), self.snapshot_options(reason, step))
        return self.note_rescue(place, snapshot)

    def snapshot_options(
        self, reason: str, step: str | None = None, equal_to: Snapshot | None = None
    ) -> SnapshotOptions:
        """Return the options of a snapshot, with this worker's limit on ignored files."""
        return SnapshotOptions(reason, self.settings.ignored_limit_bytes, step or None, equal_to)

    def differs(self, place: Place, checkpoint: str) -> bool:
        """Return whether the worktree differs from a checkpoint."""
        options = self.snapshot_options(f"differs from {checkpoint}", equal_to=find(vault_at(place), checkpoint))
        return take(place, "checkpoint", options) is not None

    def note_rescue(self, place: Place, snapshot: Snapshot | None) -> Rescue | None:
        """Write the patch and the note of a rescue, and return the rescue; `None` if none was taken."""
        return note_rescue(self.runtime.runs, place, snapshot, self.id) if snapshot is not None else None
