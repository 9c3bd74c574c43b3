"""The record of a run's start."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

StartReason = Literal[
    "first", "crashed", "rerun", "limit", "context", "session", "refused", "waited", "interrupted"
]
"""The reason to start an agent: the first start; a crash, after which the session continues; another crash, after
which work begins anew from the checkpoint; a limit, after which the session continues; a full context or a broken
session, which a new session replaces; a refusal by another agent's model; a wait for the model API or the machine;
an end from outside for a reason that is over."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """The activity to which a run belongs; only its attempts, in the same workflow run, may adopt the run."""

    workflow_id: str
    run_id: str
    activity_id: str


@dataclass(frozen=True, slots=True)
class Payer:
    """The project, work order, step and agent to which the costs of a run are charged."""

    project: str
    order_id: str
    step: str
    agent: str
    """The agent with which the work order began: the usage of another agent is reported separately."""
    asked_model: str = ""
    """The model that the work order requests; empty for the agent's own default."""
    of_pipeline: bool = False


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of a run's start in `run.json`, without secrets and without values of the environment."""

    key: RunKey
    serial: int
    step: str
    agent: str
    because: StartReason
    mark: str
    """The value of `SEPTET_RUN` in the run's processes; the turns of one process share the value."""
    argv: tuple[str, ...]
    env_names: tuple[str, ...]
    worktree: str
    limits: Mapping[str, float]
    started_at: str
    """The time of the start, as ISO 8601 in UTC."""
    began_at_seconds: float = 0.0
    """The start, in seconds since the machine's boot, which no clock change affects; 0 from an earlier release."""
    session_id: str | None = None
    resumed_from: str | None = None
    sandbox: str = "none"
    """The kind of sandbox: `bwrap`, or `none` for an agent that runs unconfined."""
    network: str = ""
    """The agent's network: `own` is a private network whose proxy is the only way out, `host` is the machine's
    network. Empty if the record does not name the network."""
    warm: bool = False
    began_in: str | None = None
    """The run that started the warm process of this run; `None` for a process that the run itself started."""
    login: str = ""
    """The name of the agent's further login; empty for the worker's own login."""
    model: str = ""
    """The requested model; empty for the agent's own default."""
    payer: Payer | None = None

    @property
    def worker(self) -> str:
        """The agent's name; for a run with a further login, also the login's name, in parentheses."""
        return f"{self.agent} ({self.login})" if self.login else self.agent


def seconds_since_boot() -> float:
    """Return the seconds since the machine's boot, or since some fixed moment if there is no boot clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
