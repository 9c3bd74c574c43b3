"""The facts of a work order on a host's disk: runs, their logs and requests, snapshots, plan and changes."""

from typing import Literal

from septet.contracts.wire import Wire


class AgentRun(Wire):
    """One start of an agent, from the files of its host."""

    run: str
    """The name of its folder: `<n>-<step>-<attempt>`."""
    step: str | None = None
    agent: str | None = None
    session_id: str | None = None
    started_at: str | None = None
    """The time of the start: ISO 8601, UTC; so is `ended_at`."""
    ended_at: str | None = None
    exit_code: int | None = None
    cause: str | None = None
    """How its process ended: `exited`, `killed`, a limit, …; `None` while it runs."""
    folder: str
    """The folder on its host, with prompt, stream and record."""
    refused_hosts: tuple[str, ...] = ()
    """The hosts that its sandbox, or the sandbox of the checks of its work, refused: `name:port`, each once."""


class NetworkRequest(Wire):
    """A network request of a run, a check or set-up, as the sandbox's proxy recorded it."""

    run: str
    """The name of the run's folder; `setup` for the set-up of the workspace."""
    step: str = ""
    of_check: bool = False
    """Whether one of the repository's checks made the request."""
    asked_at: str = ""
    """The time of the request: ISO 8601, UTC."""
    host: str
    """The requested host, without keys in it."""
    port: int = 0
    """The port; 0 if the request names no host and port."""
    allowed: bool
    why: str = ""
    """Why the request was refused."""
    sent_bytes: int = 0
    """The bytes to the host, counted when the connection ends; so are `received_bytes`."""
    received_bytes: int = 0
    seconds: float = 0.0
    request: str = ""
    """The method and path of a request to the model, whose key stays outside the sandbox."""
    count: int = 1
    """The number of such requests, if only their number was recorded."""


class LogEntry(Wire):
    """One message or action of an agent."""

    id: str
    """`<run>/<number>`: the same in every reply, and ordered by time."""
    run: str
    step: str
    agent: str
    kind: Literal["text", "tool_call", "tool_result", "result", "error"]
    text: str
    """The text, shortened and without keys in it; the run's folder has the whole stream."""
    tool: str = ""
    time: str = ""
    """The time of the entry, to about half a second; empty if not recorded."""


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
    """The paths that it does not contain."""


class PlanView(Wire):
    """A work order's plan on this host."""

    path: str
    text: str
    """The beginning of the plan, without keys in it."""
    whole: bool = True


class ChangedFile(Wire):
    """One file that differs from the base commit."""

    path: str
    added: int | None
    """The number of added lines; `None` for a binary or very large file; so is `removed`."""
    removed: int | None


class DiffView(Wire):
    """The changes of a work order on this host so far, committed or not."""

    files: tuple[ChangedFile, ...] = ()
    patch: str = ""
    """The beginning of the patch, without keys in it."""
    whole: bool = True
