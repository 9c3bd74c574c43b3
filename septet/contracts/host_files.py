"""What a host's disk shows of a work order: runs, logs, network requests, snapshots, plan and changes."""

from typing import Literal

from septet.contracts.wire import Wire


class AgentRun(Wire):
    """One start of an agent."""

    run: str
    """The name of the run's folder: `<n>-<step>-<attempt>`."""
    step: str | None = None
    agent: str | None = None
    session_id: str | None = None
    started_at: str | None = None
    """The time of the start: ISO 8601, UTC. `ended_at` has the same form."""
    ended_at: str | None = None
    exit_code: int | None = None
    cause: str | None = None
    """How the agent's process ended, such as `exited`, `killed` or a limit; `None` while it runs."""
    folder: str
    """The run's folder on the host, with prompt, stream and record."""
    refused_hosts: tuple[str, ...] = ()
    """The addresses that the sandbox refused to the agent and the checks of its work: `name:port`, each once."""


class NetworkRequest(Wire):
    """A network request of an agent, a check or the set-up, as the sandbox's proxy recorded it."""

    run: str
    """The name of the run's folder; `setup` for the set-up of the workspace."""
    step: str = ""
    of_check: bool = False
    """Whether one of the repository's checks made the request."""
    asked_at: str = ""
    """The time of the request: ISO 8601, UTC."""
    host: str
    """The host name in the requested address, with keys masked."""
    port: int = 0
    """The port; 0 if the request names no host and port."""
    allowed: bool
    why: str = ""
    """Why the request was refused."""
    sent_bytes: int = 0
    """The bytes sent, counted when the connection ends, like `received_bytes`."""
    received_bytes: int = 0
    seconds: float = 0.0
    request: str = ""
    """The method and path of a request to a model's API, if the proxy adds the key outside the sandbox."""
    count: int = 1
    """How many requests this entry stands for; more than one if single requests were not recorded."""


class LogEntry(Wire):
    """One message or action of an agent."""

    id: str
    """The entry's id, `<run>/<number>`, which is the same in every reply; ids are ordered by time."""
    run: str
    step: str
    agent: str
    kind: Literal["text", "tool_call", "tool_result", "result", "error"]
    text: str
    """The text, shortened and with keys masked; the run's folder has the whole stream."""
    tool: str = ""
    time: str = ""
    """The time of the entry, to about half a second; empty if the time was not recorded."""


class KeptSnapshot(Wire):
    """A snapshot that a person can restore."""

    snapshot: str
    """The snapshot's name, for `septet rescue restore`."""
    work_order_id: str
    """The work order of the snapshot; the lane's id if the work order is not known."""
    kind: Literal["base", "checkpoint", "rescue"]
    reason: str
    step: str | None = None
    taken_at: str
    age_seconds: int
    size_bytes: int
    commit: str
    left_out: tuple[str, ...] = ()
    """The paths that the snapshot does not contain."""


class PlanView(Wire):
    """A work order's plan on this host."""

    path: str
    text: str
    """The beginning of the plan, with keys masked."""
    whole: bool = True


class ChangedFile(Wire):
    """One file that differs from the base commit."""

    path: str
    added: int | None
    """The number of added lines; `None` for a binary or very large file. The same holds for `removed`."""
    removed: int | None


class DiffView(Wire):
    """The changes of a work order on this host so far, committed or not."""

    files: tuple[ChangedFile, ...] = ()
    patch: str = ""
    """The beginning of the patch, with keys masked."""
    whole: bool = True
