"""What is recorded of runs: who started a run, why and with what; and, in a lane, the sums of earlier runs.

A lane remembers the runs of work orders that have left it, so that no step reads them all again. Its sums say
nothing that the folders of those runs do not say: where the sums are missing or broken, the folders are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from septet.contracts.facts import Usage
from septet.contracts.wire import Wire
from septet.system.durable import read_model, write_atomically

_FILE: Final = "past.json"


class InSession(Wire):
    """What runs of one session came to together."""

    usage: Usage = Usage()
    prompt_bytes: int = 0
    stream_bytes: int = 0
    """What lies on disk of them: by this it is guessed how long a session is whose CLI does not say so."""
    model: str = ""
    """The model that the last of them requested; empty for the agent's own default."""


class ArchivedRuns(Wire):
    """Runs of a lane that are over, with their work orders' stays."""

    runs: frozenset[str] = frozenset()
    """Their folders' names."""
    serial: int = 0
    """The highest one of them."""
    sessions: dict[str, InSession] = Field(default_factory=dict)

    def of(self, session_id: str | None) -> InSession:
        """Return what a session came to in these runs."""
        return self.sessions.get(session_id or "", InSession())


def read_archive(folder: Path) -> ArchivedRuns:
    """Return what a folder of runs remembers; nothing where it is no lane's."""
    return read_model(folder / _FILE, ArchivedRuns) or ArchivedRuns()


def write_archive(folder: Path, past: ArchivedRuns) -> None:
    """Put this in the place of what was remembered; the caller holds the writer's lock."""
    write_atomically(folder / _FILE, past.model_dump_json().encode())


StartReason = Literal[
    "first", "crashed", "rerun", "limit", "context", "session", "refused", "waited", "interrupted"
]
"""Why an agent is started: for the first time; after a crash, in its session; after another crash, anew from the
checkpoint; after a limit, in its session; after its context was full, in a new one; after a wait for the model API
or the machine; after it was ended for a reason that is over."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """Whose run it is: only an attempt of the same activity in the same workflow run may adopt it."""

    workflow_id: str
    run_id: str
    activity_id: str


@dataclass(frozen=True, slots=True)
class Payer:
    """The owner of a run's costs, as each attempt of its turn reports it to the history of costs."""

    project: str
    order_id: str
    step: str
    agent: str
    """The agent that the work order began with: the usage of another agent is reported separately."""
    asked_model: str = ""
    """The model that the work order asks for; empty where it asks for none."""
    of_pipeline: bool = False


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is known of a run when it starts: `run.json`. No secret and no value of the environment is in it."""

    key: RunKey
    serial: int
    """Counts the runs of one work order."""
    step: str
    agent: str
    because: StartReason
    """Why it was started."""
    mark: str
    """The value of `SEPTET_RUN` in its processes; the turns of one process share it."""
    argv: tuple[str, ...]
    env_names: tuple[str, ...]
    worktree: str
    limits: Mapping[str, float]
    started_at: str
    """ISO 8601, UTC."""
    began_at_seconds: float = 0.0
    """When it began, in seconds since the machine's start, which no change of the clock moves; 0 where an earlier
    release did not note it."""
    session_id: str | None = None
    resumed_from: str | None = None
    sandbox: str = "none"
    """`bwrap`, or `none` for an agent that runs unconfined."""
    network: str = ""
    """`own`: a private network whose proxy is the only way out; `host`: the machine's; empty: none is noted."""
    warm: bool = False
    """Its process was to be left running for a further turn."""
    began_in: str | None = None
    """The run that started its process, where that had been left running."""
    login: str = ""
    """The name of the further login that it has; empty for the worker's own."""
    model: str = ""
    """The requested model; empty for the agent's own default."""
    payer: Payer | None = None

    @property
    def worker(self) -> str:
        """Who works, in words: the agent, and its login where that is a further one."""
        return f"{self.agent} ({self.login})" if self.login else self.agent
