"""Requests of workflows to open or move a workspace, and the facts about a workspace."""

from datetime import datetime
from typing import Final

from septet.contracts.names import Sessions
from septet.contracts.order import IssueRequest
from septet.contracts.rework import FollowTerms
from septet.contracts.task import TaskError
from septet.contracts.tracker import TrackedIssue
from septet.contracts.wire import Wire

END_WORK: Final = "end_work"
"""The ability to end cancelled work orders on the host's control queue."""
DELIVERS_CANCELS: Final = "deliver_cancel"
"""The ability to deliver cancels to running attempts, on a server that does not push them."""
LIVENESS: Final = "liveness"
"""The ability to be watched by other hosts, which report the host's silence and return; work orders need not probe
it."""
PULL_REQUESTS: Final = "pull_requests"
"""The ability to poll pull requests and report their changes to the watches."""


class OpenWorkspace(Wire):
    """A request to open a workspace for one work order."""

    work_order_id: str
    repository: str
    issue: int | None = None
    title: str | None = None
    description: str | None = None
    base: str | None = None
    agent: str | None = None
    fallback_agent: str | None = None
    """The agent that takes over at a usage limit; the repository's or the worker's choice when absent."""
    beside: tuple[str | None, ...] = ()
    """The agents that work after `agent`; the host checks all of them before any agent costs money."""
    sessions: Sessions | None = None
    """The work order's choice of sessions; the repository's or the worker's choice when absent."""
    first_run_id: str = ""
    """The work order's first workflow run; the runs of its resets have other ids."""
    push_to: str | None = None
    """The fork to push work to, such as `me/r`; the worker's setting when absent."""
    restores: str = ""
    """The lane's snapshot, on this host, from which a work order continues outside of its pipeline; or empty."""
    tracker: TrackedIssue | None = None
    """The issue, if the issue is on a tracker and not on the forge."""
    requested: IssueRequest | None = None
    """The request, with a digest of the text that may be worked on; `None` if a person started or retried the
    work order: any text may be worked on."""


class Workspace(Wire):
    """The facts about a workspace that its workflow needs; the files are on the workspace's host."""

    work_order_id: str
    host: str
    """The id of the host that has the workspace."""
    task_queue: str
    """The host's queue, on which every step of this work order runs."""
    repository: str
    """The origin's address, without credentials."""
    forge: str
    """`github`, `gitlab`, `gitea` or `local`."""
    project: str
    """The repository's name, such as `o/r`."""
    base_branch: str
    base_sha: str
    path: str
    """The worktree's path on its host."""
    agent: str
    """The name of the chosen agent."""
    fallback_agent: str = ""
    """The agent that takes over at the usage limits of the first agent's logins; empty: no agent takes over."""
    issue_number: str = ""
    """The issue's number, or the empty string for an issue given as text."""
    issue_title: str = ""
    issue_url: str | None = None
    checkpoint: str = ""
    """The snapshot of the fresh workspace."""
    planned_from: str = ""
    """The snapshot from before the planner's work, if the workspace continues from a lane; empty: `checkpoint` is
    this snapshot."""
    control_queue: str = ""
    """The queue that the host serves even when it is busy; empty if an older version opened the workspace."""
    serves: tuple[str, ...] = ()
    """The services that this host has and hosts of older versions lack. The queues of hosts are not versioned: a
    workflow schedules such work only on a host that lists the service."""
    probe_seconds: float = 60.0
    """The seconds of a step before the workflow first probes the host."""
    orphan_limit_seconds: float = 1800.0
    """The seconds after which agents of a host without a worker have ended, even if the host cannot be reached."""
    kept: bool = False
    """Whether the host also pushes its snapshots to a checkpoint remote."""
    opened_by: str = ""
    """The id of the Temporal run that opened the workspace first."""
    sessions: Sessions = "separate"
    """Whether the steps of one role share a session of the agent; in a pipeline's lanes, all steps of a role share
    a session."""
    lane: str = ""
    """The pipeline's lane that the workspace belongs to; empty for a work order's own workspace."""
    visit: str = ""
    """The unique id of a visit to a lane; empty outside of a pipeline."""
    began_at: str = ""
    """The commit on a lane's branch from which the work order continues; empty for the base commit."""
    entered_after: str = ""
    """The lane's last snapshot when the work order entered the lane; later snapshots are the work order's own."""
    fork: str = ""
    """The fork to push work to, such as `me/r`; empty for the repository itself."""
    follow: FollowTerms | None = None
    """The limits within which agents follow the repository's pull requests; `None` if the host has no such
    agents."""
    lacks: tuple[str, ...] = ()
    """The branches that the work order depends on, if its own branch does not contain their work."""
    tracker: TrackedIssue | None = None
    """The tracker's issue of the work order; the steps report their end to the issue's session."""

    @property
    def place_id(self) -> str:
        """The id of the workspace's folders on its host: the lane's id, or else the work order's id."""
        return self.lane or self.work_order_id

    @property
    def end_queue(self) -> str:
        """The queue on which the host ends cancelled work; on a host of an older version, its queue for agents."""
        return self.control_queue if END_WORK in self.serves else self.task_queue


class HostSilence(Wire):
    """A report to a work order that a host is silent: none of its workers has sent a heartbeat for a while."""

    host: str
    since: datetime


class CancelledWork(Wire):
    """A report to a host that a work order was cancelled, so that its running activities notice at once."""

    work_order_id: str


class MoveWorkspace(Wire):
    """A request to another host to open the workspace of a lost host."""

    workspace: Workspace
    checkpoint: str
    """The snapshot from which to continue; empty for the last snapshot on the checkpoint remote."""


class AgentQuestion(Wire):
    """A request to a host to check whether it can use an agent."""

    agent: str | None = None
    """The agent; `None` for the host's default."""


class AgentAnswer(Wire):
    """Whether a host can use an agent now."""

    error: TaskError | None = None
    """The error with which a work order would fail; `None` if the host can use the agent."""
