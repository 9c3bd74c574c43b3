"""What a step's activity is given and what it gives back."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from septet.contracts.facts import FileChange, Rescue, Usage
from septet.contracts.limits import StepSettings, Timeouts
from septet.contracts.names import IssueClass, Step, Verdict
from septet.contracts.pipeline import Lane, Outline
from septet.contracts.wire import Wire


class OpenWorkspace(Wire):
    """Ask for a workspace of its own for one work order."""

    work_order_id: str
    repository: str
    issue: int | None = None
    title: str | None = None
    description: str | None = None
    base: str | None = None
    agent: str | None = None
    first_run_id: str = ""
    """The work order's first workflow run: resets have others, and are the same work order all the same."""
    restores: str = ""
    """The snapshot of a lane on the same host to begin with: the work order goes on outside of its pipeline."""


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
    """`github` or `local`."""
    project: str
    """The repository's name, such as `o/r`."""
    base_branch: str
    base_sha: str
    path: str
    """The worktree's path on its host."""
    agent: str
    """The agent that was chosen."""
    issue_number: str = ""
    """The issue's number, or the empty string for an issue given as text."""
    issue_title: str = ""
    issue_url: str | None = None
    checkpoint: str = ""
    """The snapshot of the fresh workspace."""
    control_queue: str = ""
    """Where the host answers however busy it is; empty where an older version opened the workspace."""
    probe_seconds: float = 60.0
    """How long a step may take before its host is asked whether it is there."""
    orphan_limit_seconds: float = 1800.0
    """After that the host's agents have ended, also where nobody can see it."""
    kept: bool = False
    """Whether the host keeps its snapshots on a checkpoint remote."""
    opened_by: str = ""
    """The Temporal run that opened it first."""
    lane: str = ""
    """The lane of a pipeline that it is; empty where the work order has a workspace of its own."""
    visit: str = ""
    """Tells one stay in a lane from another; empty outside of a pipeline."""
    began_at: str = ""
    """The commit on a lane's branch that the work order goes on from; empty: the base commit."""

    @property
    def place_id(self) -> str:
        """What its bytes and its runs lie under on its host: the lane's id, or else the work order's."""
        return self.lane or self.work_order_id


class EnterLane(Wire):
    """Ask for a lane of a pipeline: fresh, and with the plan in it where there is one."""

    opening: OpenWorkspace
    """What is worked on."""
    lane: Lane
    visit: str
    plan_snapshot: str = ""
    """The planner's checkpoint that holds the plan; empty where nothing is planned yet."""
    plan_path: str | None = None


class SummariseCall(Wire):
    """Ask a lane's session, which has become too long, for what the issues after this one need of it."""

    workspace: Workspace
    pipeline: str
    session_id: str
    model: str | None = None
    limits: Timeouts = Timeouts()


class Summarised(Wire):
    """What the question for a summary came to; the summary itself stays on its host's disk."""

    kept_bytes: int = 0
    """How long it is; 0: there is none, and `warning` says why."""
    warning: Annotated[str, Field(max_length=500)] = ""
    usage: Usage = Usage()


class MoveWorkspace(Wire):
    """Ask another host to open the workspace of one that is gone."""

    workspace: Workspace
    checkpoint: str
    """The snapshot to go on from."""


class Progress(Wire):
    """What the steps before this one found out."""

    issue_class: IssueClass | None = None
    planner_answer: str | None = None
    """What `build_plan` answered: the path as the planner gave it."""
    plan_path: str | None = None
    branch_name: str | None = None
    commit_sha: str | None = None


class StepCall(Wire):
    """The input of each of the seven steps."""

    step: Step
    workspace: Workspace
    progress: Progress = Progress()
    attempt: int = 1
    """1, or 2 when the step is tried once more."""
    reasons: tuple[str, ...] = ()
    """What was said of the work before: a person's feedback, and why the first try was not accepted."""
    starts_from: str = ""
    """The checkpoint that the step begins with; a reset returns to it."""
    model: str | None = None
    limits: Timeouts = Timeouts()
    settings: StepSettings = StepSettings()
    """What the work order says for this step alone."""
    draft: bool = False
    labels: tuple[str, ...] = ()
    pipeline: str = ""
    """The pipeline that it belongs to; empty outside of one."""
    session_id: str | None = None
    """The session to go on with; a new one where there is none."""


class FinalizeCall(Wire):
    """Ask the session of a step for its answer alone, as JSON."""

    call: StepCall
    session_id: str
    reasons: tuple[str, ...]
    """What was wrong with the answer, for the prompt."""
    attempt: int = 1
    """1, or 2 with another prompt."""
    result: "StepResult"
    """What the step itself found, to be completed by an answer."""


class StepResult(Wire):
    """The output of a step: `result_text` and bounded facts, never the stream."""

    step: Step
    verdict: Verdict
    result_text: Annotated[str, Field(max_length=8192)] | None = None
    """The answer's canonical plain form."""
    result_json: JsonValue = None
    """The checked answer, up to 4 KB."""
    reasons: tuple[str, ...] = ()
    """Why the verdict is not `done`."""
    agent: str = ""
    model: str | None = None
    session_id: str | None = None
    context_tokens: int = 0
    """How long that session is now, in a pipeline's lane: as far as its CLI tells, or by an estimate."""
    parsed_by: str | None = None
    """The rung of the answer ladder that read it."""
    recovered_by: str | None = None
    """What this result needed: a rung of the retry ladder (`adopt`, `read`, `resume`, `rerun`), or `finalizer`."""
    agent_starts: int = 1
    exit_code: int | None = None
    duration_seconds: float = 0.0
    timestamp: str = ""
    """When the step began: ISO 8601, UTC."""
    usage: Usage = Usage()
    files_changed: tuple[FileChange, ...] = ()
    """The first hundred."""
    files_changed_count: int = 0
    warnings: tuple[str, ...] = ()
    checkpoint: str | None = None
    """The snapshot taken when the step was done."""
    rescues: tuple[Rescue, ...] = ()
    """What was kept of the worktree since the step began, oldest first."""
    commit_sha: str | None = None
    plan_sha256: str | None = None
    """The SHA-256 of the plan's file, where the step has found one."""
    outline: Outline | None = None
    """Of the solution that a pipeline's planner found."""
    run: str = ""
    """The run's folder, relative to the state directory: prompt, stream and record."""
    sandbox: str = ""
    """What confined the agent: `bwrap`, or `none`; empty where no agent was started."""


class SweepCall(Wire):
    """Ask a host's janitor for a pass."""

    server_now: datetime
    """The Temporal server's clock."""


class FailureFacts(Wire):
    """What an activity's error carries beside its message."""

    remedy: str = ""
    """How to go on."""
    result: StepResult | None = None
    """What is known of the step."""


FinalizeCall.model_rebuild()
