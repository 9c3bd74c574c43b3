"""What a host reads of a work order from its disk: runs, their logs and requests, snapshots, plan and changes."""

from typing import Literal

from septet.contracts.wire import Wire


class AgentRun(Wire):
    """One start of an agent, as the files of its host tell it."""

    run: str
    """Its folder's name: `<n>-<step>-<attempt>`."""
    step: str | None = None
    agent: str | None = None
    session_id: str | None = None
    started_at: str | None = None
    """ISO 8601, UTC; so is `ended_at`."""
    ended_at: str | None = None
    exit_code: int | None = None
    cause: str | None = None
    """How its process ended: `exited`, `killed`, a limit, …; `None` while it lives."""
    folder: str
    """On the host that keeps it: prompt, stream and record."""
    refused_hosts: tuple[str, ...] = ()
    """Hosts that its sandbox, or that of its work's checks, did not let through: `name:port`, each once."""


class NetworkRequest(Wire):
    """A connection that a run, a check of its work or set-up asked for, as its sandbox's proxy noted it."""

    run: str
    """Its folder's name; `setup` for the set-up of the workspace."""
    step: str = ""
    of_check: bool = False
    """Whether one of the repository's checks made the request."""
    asked_at: str = ""
    """ISO 8601, UTC."""
    host: str
    """The requested host, without keys in it."""
    port: int = 0
    """0 where what was asked for names no host and port."""
    allowed: bool
    why: str = ""
    """Why it was refused."""
    sent_bytes: int = 0
    """To the host; as all it is counted when the connection is over."""
    received_bytes: int = 0
    seconds: float = 0.0
    request: str = ""
    """Method and path of a request to the model whose key stays outside."""
    count: int = 1
    """How many such requests there were, where only their number was noted."""


class LogEntry(Wire):
    """One thing that an agent said or did."""

    id: str
    """`<run>/<number>`: the same at every look, and ordered as it happened."""
    run: str
    step: str
    agent: str
    kind: Literal["text", "tool_call", "tool_result", "result", "error"]
    text: str
    """Without keys in it, and short: the stream itself is in the run's folder."""
    tool: str = ""
    time: str = ""
    """When it was said or done, to about half a second; empty if not recorded."""


class KeptSnapshot(Wire):
    """A snapshot that a person can have back."""

    snapshot: str
    """Its name: what `septet rescue restore` takes."""
    work_order_id: str
    """The work order it belongs to; the lane's id if that is not known."""
    kind: Literal["base", "checkpoint", "rescue"]
    reason: str
    step: str | None = None
    taken_at: str
    age_seconds: int
    size_bytes: int
    commit: str
    left_out: tuple[str, ...] = ()
    """Paths that it does not contain."""


class PlanView(Wire):
    """A work order's plan as it stands on this host."""

    path: str
    text: str
    """Its beginning, without keys in it."""
    whole: bool = True


class ChangedFile(Wire):
    """One file that differs from the base commit."""

    path: str
    added: int | None
    """Lines; `None` for a binary or very large file, and so is `removed`."""
    removed: int | None


class DiffView(Wire):
    """What a work order has changed so far on this host, committed or not."""

    files: tuple[ChangedFile, ...] = ()
    patch: str = ""
    """Its beginning, without keys in it."""
    whole: bool = True
