"""The host that runs an activity: its settings, folders, agents and forges."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import JsonValue
from temporalio import activity

from activities.host.failures import translating_failures
from activities.host.running_attempts import Heartbeats, RunningAttempts, heartbeating
from activities.host.snapshots import Snapshots
from septet.agents.clis.adapter import Adapter, Machine
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.folders import Runs
from septet.agents.runs.homes import Homes
from septet.agents.runs.logins import Logins
from septet.agents.runs.sessions import SessionFolder
from septet.agents.sandbox.connections import RUNNER_LOCK
from septet.agents.sandbox.guest_run import GuestRunner
from septet.agents.sandbox.sandbox import Sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.follow import Pace
from septet.agents.turns.request import AgentRuntime
from septet.budgets.account import AccountState, Grant, ReserveCall, SettleCall
from septet.budgets.turn_notes import HeldTurns, NoteFiles
from septet.contracts.names import CONTROL
from septet.contracts.pauses import QuotaPause
from septet.contracts.workspace import DELIVERS_CANCELS, END_WORK, PULL_REQUESTS
from septet.errors import HostFullError
from septet.forges.choose import forge_for, token_for
from septet.forges.forge import Forge
from septet.git.engine.address import Address, parse_address
from septet.git.engine.place import Place, SizeLimits, find_place
from septet.settings import MIB, Settings
from septet.state import StateDir
from septet.system.threads import Beside, ThreadPools


class Accounts(Protocol):
    """The budget accounts; each method raises SeptetError if an account cannot be reached now."""

    async def reserve(self, opening: AccountState, call: ReserveCall, *, opens: bool) -> Grant | None:
        """Reserve room for a turn; return the reply, or `None` if the account is closed and must not be opened."""

    async def is_open(self, scope: str) -> bool:
        """Return whether an account is open."""

    async def find_pause(self, login: str) -> QuotaPause | None:
        """Return a login's pause, if the login has reached its usage limit; else `None`."""

    async def note_pause(self, login: str, pause: QuotaPause) -> None:
        """Forbid all hosts to start an agent with a login until the login's usage limit resets."""

    async def settle(self, scope: str, call: SettleCall) -> None:
        """Report the use of a turn to an account."""


_PASSES: Final = 3
"""How often full hosts leave a new work order to other hosts. Then the next host opens the workspace, although it
is full, so that errors of the repository or the issue are reported at once.
"""


@dataclass(frozen=True, slots=True)
class Forges:
    """The forges that a host's settings know."""

    settings: Settings

    def of(self, repository: str) -> tuple[Address, Forge]:
        """Return a repository's address, and the forge of its issues and pull requests.

        Raises:
            InvalidInputError: `repository` is not an address, or no known forge is at the address.
        """
        address = parse_address(repository, home=Path.home())
        return address, forge_for(address, self.settings)

    def token(self, address: Address) -> str | None:
        """Return the worker's key for an https address on a known forge, else `None`; agents never see the key."""
        return token_for(address, self.settings)

    def token_for(self, repository: str) -> str | None:
        """Return the worker's key for a repository; `None` if the worker has no key."""
        return self.token(parse_address(repository, home=Path.home()))


@dataclass(eq=False)
class Host:
    """A worker's host: the settings, folders and abilities that its activities use."""

    id: str
    settings: Settings
    state: StateDir
    supervisors: Supervisors
    sandbox: Sandbox = field(default_factory=Sandbox)
    threads: ThreadPools = field(default_factory=lambda: ThreadPools.sized(1, 1))
    serves: tuple[str, ...] = (END_WORK, PULL_REQUESTS, DELIVERS_CANCELS)
    """The abilities that the host announces with each workspace; some abilities need support by the server."""
    beside: Beside = field(default_factory=Beside)
    attempts: RunningAttempts = field(default_factory=RunningAttempts)
    pace: Pace = field(default_factory=Pace)
    max_agents: int | None = None
    """How many agents each worker of the host runs at a time; `None` for any number."""
    accounts: Accounts | None = None
    """The budget accounts that must allow each agent; `None` if the host has neither budgets nor cost records."""

    forges: Forges = field(init=False)
    """The forges that this host can reach."""
    runs: Runs = field(init=False)
    """The agent runs of this host."""
    snapshots: Snapshots = field(init=False)
    """The snapshots of this host's work orders."""
    homes: Homes = field(init=False)
    """The home folders that the host's work orders have in place of the user's home."""
    agents: Machine = field(init=False)
    """What the adapters of agent CLIs need to know about this machine."""
    further_logins: Mapping[str, Mapping[str, Path]] = field(init=False)
    """The paths of each agent's further logins, by agent and name."""
    runtime: AgentRuntime = field(init=False)
    """The part of Septet that runs this host's agents."""
    held_turns: HeldTurns = field(init=False)
    """The host's notes about turns for which a budget has reserved room."""
    cost_notes: NoteFiles = field(init=False)
    """The notes about agents' costs that this host has not reported yet."""

    def __post_init__(self) -> None:
        """Make the parts that all activities of the host use."""
        settings, state = self.settings, self.state
        self.forges = Forges(settings)
        self.runs = Runs(state.runs, state.runner / RUNNER_LOCK if settings.runner else None)
        self.snapshots = Snapshots(self.id, self.runs, settings.ignored_limit_bytes)
        self.homes = Homes(state.homes, Logins(state.logins))
        environ = {"SEPTET_SCRIPTED_HOME": str(state.agent_homes), **settings.environ}
        is_sandboxed = settings.sandboxed or self.sandbox.confines
        self.agents = Machine(environ, settings.agent_programs, sandboxed=is_sandboxed)
        self.further_logins = settings.agent_logins
        self.runtime = AgentRuntime(
            self.runs,
            self.supervisors,
            self.agents,
            settings.orphan_limit_seconds,
            pace=self.pace,
            sandbox=self.sandbox,
            warm=settings.warm_agents,
            homes=self.homes,
            resources=settings.guest_resources,
        )
        self.held_turns, self.cost_notes = HeldTurns(state.held_turns), NoteFiles(state.cost_notes)
        self._limits = SizeLimits(settings.tree_limit_mib * MIB, settings.file_limit_bytes)

    @property
    def queue_prefix(self) -> str:
        """The beginning of a host queue's name, equal for all hosts that take work orders from the same queue."""
        return f"{self.settings.task_queue}-host-"

    @property
    def task_queue(self) -> str:
        """The queue that only this host's workers serve."""
        return f"{self.queue_prefix}{self.id}"

    @property
    def control_queue(self) -> str:
        """The queue for short work, on which this host answers even if agents take all of the host's slots."""
        return f"{self.task_queue}{CONTROL}"

    def pass_on_if_full(self) -> None:
        """Raise if this host is full, so that another host gets the task; activities for any host call this first.

        Raises:
            HostFullError: This host has no free slot; another host may take the next attempt.
        """
        info = activity.info()
        if self.max_agents is None or info.task_queue == self.task_queue or info.attempt > _PASSES:
            return
        if self.attempts.count(self.task_queue) >= self.max_agents:
            message = f"Host {self.id} has no free slot for an agent."
            raise HostFullError(message, retry_after_seconds=0.05)

    @property
    def whereabouts(self) -> dict[str, Any]:
        """What a workspace records about this host, by field of the workspace: the host's id, queues and so on."""
        return {
            "host": self.id,
            "task_queue": self.task_queue,
            "control_queue": self.control_queue,
            "serves": self.serves,
            "probe_seconds": self.settings.probe_seconds,
            "orphan_limit_seconds": self.settings.orphan_limit_seconds,
            "kept": self.settings.checkpoint_remote is not None,
        }

    @asynccontextmanager
    async def working(
        self, *, most_tries: int | None = None, notifies_on: str = "", issue: Mapping[str, JsonValue] | None = None
    ) -> AsyncIterator[Heartbeats]:
        """Send heartbeats and translate failures while the block runs an activity; see `translating_failures`."""
        root = self.state.root
        with translating_failures(root, most_tries=most_tries, notifies_on=notifies_on, issue=issue):
            async with heartbeating(self.attempts) as heartbeats:
                yield heartbeats

    def sessions(self, place: Place, adapter: Adapter) -> SessionFolder | None:
        """Return an agent's session folder in a work order's home; `None` if the agent uses the user's home."""
        if not self.sandbox.confines:
            return None
        return self.homes.of(place.order_id, adapter, self.agents).sessions

    def guests(self, place: Place, folder: Path, writer_lock: int) -> GuestRunner:
        """Return a `GuestRunner` for a repository's programs; the caller must hold the writer's lock.

        Args:
            writer_lock: The descriptor of the writer's lock.
        """
        runtime = self.runtime
        return GuestRunner(
            runtime.runs, runtime.supervisors, self.sandbox, folder, place.objects, writer_lock, runtime.resources
        )

    def keeps_process(self, agent: str) -> bool:
        """Return whether an agent's process can serve several turns on this host; `False` for an empty name."""
        return bool(agent) and self.settings.warm_agents and adapter_for(agent).capabilities.input_stream

    def place(self, order_id: str, visitor: str = "") -> Place:
        """Return the folders of a work order that was opened on this host.

        Args:
            order_id: The work order, or the lane.
            visitor: The work order that the lane serves now; empty outside of lanes.

        Raises:
            NotFoundError: The work order was opened on another host.
        """
        return find_place(self.state, order_id, self.settings.git_env, visitor, self._limits)
