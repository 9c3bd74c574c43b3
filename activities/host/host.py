"""The host that an activity works on: its settings, its folders, its agents, and its forges."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from septet.budgets.held_turns import HeldTurns
from septet.contracts.budget import AccountState, Grant, QuotaPause, ReserveCall, SettleCall
from septet.contracts.names import CONTROL
from septet.contracts.workspace import DELIVERS_CANCELS, END_WORK, PULL_REQUESTS
from septet.costs.note_files import NoteFiles
from septet.errors import HostFullError
from septet.forges.choose import forge_for, token_for
from septet.forges.forge import Forge
from septet.git.engine.address import Address, parse_address
from septet.git.engine.place import Place
from septet.git.workspace.workspace import find_place
from septet.settings import MIB, Settings
from septet.state import StateDir
from septet.system.threads import Beside, ThreadPools


class Accounts(Protocol):
    """The accounts of an installation's budgets. A method raises SeptetError if it cannot reach an account now."""

    async def reserve(self, opening: AccountState, call: ReserveCall, *, opens: bool) -> Grant | None:
        """Reserve room for a turn, and return the account's reply; `None` if no budget exists and not `opens`."""

    async def is_open(self, scope: str) -> bool:
        """Return whether a budget exists."""

    async def find_pause(self, login: str) -> QuotaPause | None:
        """Return the pause of a login that has reached its usage limit; `None` for any other login."""

    async def note_pause(self, login: str, pause: QuotaPause) -> None:
        """Record that no host may start an agent with a login until the login's usage limit resets."""

    async def settle(self, scope: str, call: SettleCall) -> None:
        """Report a turn's use to an account."""


_PASSES: Final = 3
"""The number of attempts that full hosts leave to other hosts. If all hosts are full, the host of the next attempt
opens the workspace: an error of the repository or the issue is then reported at once, however long the agent waits
for a slot."""


@dataclass(frozen=True, slots=True)
class Forges:
    """The forges that a host's settings know."""

    settings: Settings

    def of(self, repository: str) -> tuple[Address, Forge]:
        """Return a repository's address, and the forge of its issues and pull requests.

        Raises:
            InvalidInputError: `repository` is no address, or no known forge is at the address.
        """
        address = parse_address(repository, home=Path.home())
        return address, forge_for(address, self.settings)

    def token(self, address: Address) -> str | None:
        """Return the worker's key for an https origin on a known forge, else `None`; no agent sees the key."""
        return token_for(address, self.settings)

    def token_for(self, repository: str) -> str | None:
        """Return the worker's key for a repository; `None` without a key."""
        return self.token(parse_address(repository, home=Path.home()))


@dataclass(frozen=True)
class Host:
    """A worker's host: the settings, folders and abilities that its activities use."""

    id: str
    settings: Settings
    state: StateDir
    supervisors: Supervisors
    sandbox: Sandbox = field(default_factory=Sandbox)
    threads: ThreadPools = field(default_factory=lambda: ThreadPools.sized(1, 1))
    serves: tuple[str, ...] = (END_WORK, PULL_REQUESTS, DELIVERS_CANCELS)
    """The abilities that the host's workspaces announce; some abilities need a server that supports them."""
    beside: Beside = field(default_factory=Beside)
    attempts: RunningAttempts = field(default_factory=RunningAttempts)
    pace: Pace = field(default_factory=Pace)
    max_agents: int | None = None
    """The number of agents that each worker of the host runs at a time; `None` if agents are not counted."""
    accounts: Accounts | None = None
    """The accounts of budgets, which decide whether an agent may start; `None` if nothing is limited or
    counted."""

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
        """The queue on which this host answers even if agents take all of its slots."""
        return f"{self.task_queue}{CONTROL}"

    def pass_on_if_full(self) -> None:
        """Fail if this host is full, so that another host takes the task of the shared queue; call this first.

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

    @asynccontextmanager
    async def working(
        self, *, most_tries: int | None = None, notifies_on: str = "", issue: Mapping[str, JsonValue] | None = None
    ) -> AsyncIterator[Heartbeats]:
        """Run an activity in the block: translate failures with `translating_failures`, and send heartbeats."""
        root = self.state.root
        with translating_failures(root, most_tries=most_tries, notifies_on=notifies_on, issue=issue):
            async with heartbeating(self.attempts) as heartbeats:
                yield heartbeats

    @cached_property
    def runs(self) -> Runs:
        """The agent runs of this host."""
        return Runs(self.state.runs, self.state.runner / RUNNER_LOCK if self.settings.runner else None)

    @cached_property
    def snapshots(self) -> Snapshots:
        """The snapshots of this host's work orders."""
        return Snapshots(self.id, self.runs, self.settings.ignored_limit_bytes)

    @cached_property
    def forges(self) -> Forges:
        """The forges that this host can reach."""
        return Forges(self.settings)

    @cached_property
    def runtime(self) -> AgentRuntime:
        """The runtime with which this host runs its agents."""
        orphan_limit = self.settings.orphan_limit_seconds
        return AgentRuntime(
            self.runs,
            self.supervisors,
            self.agents,
            orphan_limit,
            pace=self.pace,
            sandbox=self.sandbox,
            warm=self.settings.warm_agents,
            homes=self.homes,
            resources=self.settings.guest_resources,
        )

    @cached_property
    def held_turns(self) -> HeldTurns:
        """The host's notes of the turns for which a budget has reserved room."""
        return HeldTurns(self.state.held_turns)

    @cached_property
    def cost_notes(self) -> NoteFiles:
        """The unreported costs of the host's agents."""
        return NoteFiles(self.state.cost_notes)

    @cached_property
    def homes(self) -> Homes:
        """The home folders of the host's work orders."""
        return Homes(self.state.homes, Logins(self.state.logins))

    def sessions(self, place: Place, adapter: Adapter) -> SessionFolder | None:
        """Return an agent's session folder in a work order's home; without a sandbox `None`, for the user's."""
        if not self.sandbox.confines:
            return None
        return self.homes.of(place.order_id, adapter, self.agents).sessions

    def guests(self, place: Place, folder: Path, writer_lock: int) -> GuestRunner:
        """Return a runner of a repository's own programs, for an attempt that holds the writer's lock.

        Args:
            writer_lock: The descriptor of the writer's lock.
        """
        runtime = self.runtime
        return GuestRunner(
            runtime.runs, runtime.supervisors, self.sandbox, folder, place.objects, writer_lock, runtime.resources
        )

    @cached_property
    def agents(self) -> Machine:
        """The facts about this machine that the adapters of agent CLIs read."""
        settings = self.settings
        environ = {"SEPTET_SCRIPTED_HOME": str(self.state.agent_homes), **settings.environ}
        return Machine(environ, settings.agent_programs, sandboxed=settings.sandboxed or self.sandbox.confines)

    def keeps_process(self, agent: str) -> bool:
        """Return whether an agent's process can serve several turns here; `False` for an empty name."""
        return bool(agent) and self.settings.warm_agents and adapter_for(agent).capabilities.input_stream

    def place(self, order_id: str, visitor: str = "") -> Place:
        """Return the folders of a work order that was opened here.

        Args:
            order_id: The work order, or the lane.
            visitor: The work order that the lane serves now; empty outside of lanes.

        Raises:
            NotFoundError: The work order was opened on another host.
        """
        settings = self.settings
        return replace(
            find_place(self.state, order_id, settings.git_env),
            tree_limit_bytes=settings.tree_limit_mib * MIB,
            file_limit_bytes=settings.file_limit_bytes,
            visitor=visitor,
        )
