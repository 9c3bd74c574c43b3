"""What an activity works with: the possessions of its host, and the place and papers of one work order."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import JsonValue

from septet.agents.adapter import Host as AgentHost
from septet.agents.launch import Means
from septet.agents.runs import Runs
from septet.agents.supervisors import Supervisors
from septet.contracts.facts import Rescue
from septet.contracts.wire import Wire
from septet.errors import WorkspaceError
from septet.forges.choose import forge_for
from septet.forges.forge import Forge
from septet.git.address import Address, parse_address
from septet.git.place import Place
from septet.git.record import find_place
from septet.git.snapshots.durable import write_durably
from septet.git.snapshots.snapshot import Snapshot
from septet.git.snapshots.take import take
from septet.settings import MIB, Settings
from septet.state import StateDir

_PAPERS: Final = "papers.json"


class Papers(Wire):
    """What is read once, before the first agent starts: no edit of an agent changes it."""

    issue: dict[str, JsonValue]
    files: dict[str, str]
    """The repository's own commands and settings as of the base commit, by path."""

    def read(self, path: str) -> bytes | None:
        """Return a file as of the base commit, if the repository has it."""
        return self.files[path].encode() if path in self.files else None


@dataclass(frozen=True, slots=True)
class Host:
    """A worker's host."""

    id: str
    settings: Settings
    state: StateDir
    supervisors: Supervisors

    @property
    def task_queue(self) -> str:
        """The queue that only this host's workers serve."""
        return f"{self.settings.task_queue}-host-{self.id}"

    @property
    def means(self) -> Means:
        """What this host runs its agents with."""
        orphan_limit = self.settings.orphan_limit_seconds
        return Means(Runs(self.state.runs), self.supervisors, self.agents, orphan_limit)

    @property
    def agents(self) -> AgentHost:
        """What adapters are told of this machine."""
        settings = self.settings
        return AgentHost(settings.environ, settings.agent_programs, sandboxed=settings.sandboxed)

    def place(self, order_id: str) -> Place:
        """Return the place of a work order that was opened here.

        Raises:
            NotFoundError: It was opened on another host.
        """
        return find_place(self.state, order_id, self.settings.git_env)

    def forge(self, repository: str) -> tuple[Address, Forge]:
        """Return where a repository lives, and the forge of its issues and pull requests.

        Raises:
            InvalidInputError: It is no address, or its host has no forge.
        """
        address = parse_address(repository, home=Path.home())
        return address, forge_for(address, self.settings)

    def token(self, address: Address) -> str | None:
        """Return the worker's key for an https origin on GitHub; no agent ever sees it."""
        secret = self.settings.github_token
        return secret.get_secret_value() if secret is not None and address.kind == "remote" else None

    def token_for(self, repository: str) -> str | None:
        """Return the worker's key for a repository."""
        return self.token(parse_address(repository, home=Path.home()))

    def snapshot(
        self, place: Place, kind: Literal["checkpoint", "rescue"], reason: str, step: str | None = None
    ) -> Snapshot | None:
        """Take a snapshot within this worker's limit on ignored files."""
        limit = self.settings.ignored_limit_mib * MIB
        return take(place, kind, reason, ignored_limit_bytes=limit, step=step)

    def rescue(self, place: Place, reason: str, step: str) -> Rescue | None:
        """Take a rescue; `None` when there is nothing to lose."""
        snapshot = self.snapshot(place, "rescue", reason, step)
        if snapshot is None:
            return None
        return Rescue(
            snapshot=snapshot.name,
            reason=reason,
            step=step,
            host=self.id,
            taken_at=snapshot.taken_at,
        )


def write_papers(place: Place, papers: Papers) -> None:
    """Keep the papers beside the vault, out of the agent's reach."""
    write_durably(place.books / _PAPERS, papers.model_dump_json().encode())


def read_papers(place: Place) -> Papers:
    """Return the papers of a work order.

    Raises:
        WorkspaceError: They are missing.
    """
    try:
        return Papers.model_validate_json((place.books / _PAPERS).read_bytes())
    except FileNotFoundError as error:
        raise WorkspaceError(f"The workspace of {place.order_id} was not opened to the end.") from error
