"""A workspace as workflows know it: how one is asked for, what it is, and its move to another host."""

from datetime import datetime
from typing import Final

from septet.contracts.names import Sessions
from septet.contracts.order import IssueRequest
from septet.contracts.rework import FollowTerms
from septet.contracts.task import TaskError
from septet.contracts.tracker import TrackedIssue
from septet.contracts.wire import Wire

END_WORK: Final = "end_work"
"""The host ends the agent of a cancelled work order from its control queue, where no agent takes a slot."""
DELIVERS_CANCELS: Final = "deliver_cancel"
"""The host has an attempt ask whether it was cancelled: its server does not push cancels to workers."""
LIVENESS: Final = "liveness"
"""Its work orders are told when the host falls silent, and when it is back: nobody has to ask it."""
PULL_REQUESTS: Final = "pull_requests"
"""The host looks at pull requests by itself, and tells their workflows what is new."""


class OpenWorkspace(Wire):
    """Ask for a workspace of its own for one work order."""

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
    """Agents that are to work after this one: nothing is paid for before they can be used as well."""
    sessions: Sessions | None = None
    """What the work order says of its agent's sessions; the repository's or the worker's choice when absent."""
    first_run_id: str = ""
    """The work order's first workflow run: resets have others, and are the same work order all the same."""
    push_to: str | None = None
    """The fork that work is pushed to, such as `me/r`; as the worker's settings say when absent."""
    restores: str = ""
    """The snapshot of a lane on the same host to begin with: the work order goes on outside of its pipeline."""
    tracker: TrackedIssue | None = None
    """The issue of a tracker, where that has it and not the forge."""
    requested: IssueRequest | None = None
    """The text of the issue that may be worked on; any, when absent: a person has started or retried it."""


class Workspace(Wire):
    """A workspace as the workflow knows it; its bytes are on the host that opened it."""

    work_order_id: str
    host: str
    """The id of the host that holds it."""
    task_queue: str
    """The host's queue: every step of this work order runs there."""
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
    """The agent that was chosen."""
    fallback_agent: str = ""
    """The agent that takes over where the usage limits of the first one's logins are reached; empty: none does."""
    issue_number: str = ""
    """The issue's number, or the empty string for an issue given as text."""
    issue_title: str = ""
    issue_url: str | None = None
    checkpoint: str = ""
    """The snapshot of the fresh workspace."""
    planned_from: str = ""
    """The snapshot from before the planner, where the workspace continues from a lane's; empty: `checkpoint`."""
    control_queue: str = ""
    """Where the host answers however busy it is; empty where an older version opened the workspace."""
    serves: tuple[str, ...] = ()
    """What the host does that older ones did not. Queues of hosts are not versioned: a host gets what it says."""
    probe_seconds: float = 60.0
    """How long a step may take before its host is asked whether it is there."""
    orphan_limit_seconds: float = 1800.0
    """After that the host's agents have ended, also where nobody can see it."""
    kept: bool = False
    """Whether the host keeps its snapshots on a checkpoint remote."""
    opened_by: str = ""
    """The Temporal run that opened it first."""
    sessions: Sessions = "separate"
    """Whether the steps of one role share a session of the agent. A pipeline's lanes always do."""
    lane: str = ""
    """The lane of a pipeline that it is; empty where the work order has a workspace of its own."""
    visit: str = ""
    """Tells one visit to a lane from another; empty outside of a pipeline."""
    began_at: str = ""
    """The commit on a lane's branch that the work order goes on from; empty: the base commit."""
    entered_after: str = ""
    """The last snapshot of a lane as the work order entered it: later ones are of its own."""
    fork: str = ""
    """The fork that work is pushed to, such as `me/r`; empty where it is the repository itself."""
    follow: FollowTerms | None = None
    """How far agents follow the repository's pull requests; `None` where the host cannot have one do so."""
    lacks: tuple[str, ...] = ()
    """Branches that the work order depends on, and that its own one does not hold."""
    tracker: TrackedIssue | None = None
    """The issue of a tracker that it is about; steps tell there how they ended."""

    @property
    def place_id(self) -> str:
        """What its bytes and its runs lie under on its host: the lane's id, or else the work order's."""
        return self.lane or self.work_order_id

    @property
    def end_queue(self) -> str:
        """The queue on which the host ends the work: its agents' on a host that knows no better."""
        return self.control_queue if END_WORK in self.serves else self.task_queue


class HostSilence(Wire):
    """Tell a work order that no worker of a host has been heard of for a while."""

    host: str
    since: datetime


class CancelledWork(Wire):
    """Tell a host that a work order was cancelled of which it may carry out an activity."""

    work_order_id: str


class MoveWorkspace(Wire):
    """Ask another host to open the workspace of one that is gone."""

    workspace: Workspace
    checkpoint: str
    """The snapshot to go on from; empty: the last one that was kept."""


class AgentQuestion(Wire):
    """Ask a host whether it can use an agent."""

    agent: str | None = None
    """`None` is the host's default."""


class AgentAnswer(Wire):
    """Whether a host can use an agent now."""

    error: TaskError | None = None
    """Why not, in the words in which a work order would fail; `None` where it can."""
