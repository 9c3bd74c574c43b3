"""What a step's activity is given and what it gives back."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from septet.contracts.budget import BudgetWait
from septet.contracts.facts import FileChange, KeyFinding, Rescue, Usage
from septet.contracts.limits import StepSettings, Timeouts
from septet.contracts.names import READ_OUTGOING, REWORK, IssueClass, Step, Verdict
from septet.contracts.rework import Rework
from septet.contracts.solution import Outline
from septet.contracts.wire import Wire
from septet.contracts.workspace import Workspace


class Progress(Wire):
    """What the steps before this one found out."""

    issue_class: IssueClass | None = None
    planner_answer: str | None = None
    """What `build_plan` answered: the path as the planner gave it."""
    plan_path: str | None = None
    plan_sha256: str | None = None
    """Of the plan's file as it was found, and shown to whoever approves it."""
    plan_bytes: int | None = None
    """The size of that file."""
    branch_name: str | None = None
    commit_sha: str | None = None


class ReaderReport(Wire):
    """What a reader has said of what is about to leave."""

    digest: str
    """Of what was read: commits, branch and texts."""
    findings: tuple[KeyFinding, ...] = ()


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
    approve_plan: bool = False
    """Whether the plan waits for a person."""
    plan_comment: bool = False
    """Whether it is posted to the issue then, also where the repository does not ask for comments."""
    allowed_findings: tuple[str, ...] = ()
    """What a person has let pass of what was found in the work: ids."""
    project: str = ""
    budget: str = ""
    """The work order's own, as it is written; empty where it has none."""
    pipeline_budget: str = ""
    pays_from: str = ""
    """The pipeline whose budget counts where a reset has taken the work order out of it."""
    waits_for_budget: bool = False
    """The workflow waits where the step comes back as `over_budget`; else it is tried again."""
    rework: Rework | None = None
    """What its agent answers on the pull request; it is `implement_plan` in all else."""
    reading: ReaderReport | None = None
    """What a reader has said of what leaves with the answer of this call."""
    settles: str = ""
    """The activity whose agent has answered this call already: that answer is read again, and no agent begins."""
    reads: str = ""
    """What a second agent is to read before it leaves, by its digest: then the call is that reader's."""

    @property
    def name(self) -> str:
        """What people and folders call it: the step, `rework`, or `read_outgoing`."""
        if self.reads:
            return READ_OUTGOING
        return REWORK if self.rework is not None else self.step.value

    @property
    def table(self) -> str:
        """The table of a repository's settings that is for it: the step's, or `read_outgoing`."""
        return READ_OUTGOING if self.reads else self.step.value

    @property
    def number(self) -> int:
        """Its place in the order: that of the step, and a rework comes after all."""
        return len(Step) + 1 if self.rework is not None else self.step.number

    @property
    def shares_session(self) -> bool:
        """Whether a later turn goes on in this one's session: in a lane, or where steps share sessions."""
        return not self.reads and (bool(self.pipeline) or self.workspace.sessions == "shared")

    @property
    def keeps_process(self) -> bool:
        """Whether the agent's process may wait for that turn: after a round on a pull request none may come."""
        return self.shares_session and self.rework is None


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


class EndCall(StepCall):
    """End the try of a step that its activity could not end itself."""

    earlier: "StepResult | None" = None
    """What the activities of the try that have come back have come to together."""
    activity_id: str | None = None
    """The activity that has not come back; empty where none was under way, `None` where nobody knows."""

    @classmethod
    def of(cls, call: StepCall, earlier: "StepResult | None", activity_id: str | None) -> "EndCall":
        """Return the end of what `call` has begun."""
        facts = {name: getattr(call, name) for name in StepCall.model_fields}
        return cls(**facts, earlier=earlier, activity_id=activity_id)


class StepFacts(Wire):
    """What is known of a step whatever its verdict: it stays when a finalizer asks for the answer once more."""

    step: Step
    agent: str = ""
    login: str = ""
    """The name of the further login that its agent had; empty for the worker's own."""
    model: str | None = None
    session_id: str | None = None
    context_tokens: int = 0
    """How long that session is now, in a pipeline's lane: as far as its CLI tells, or by an estimate."""
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
    run: str = ""
    """The run's folder, relative to the state directory: prompt, stream and record."""
    sandbox: str = ""
    """What confined the agent: `bwrap`, or `none`; empty where no agent was started."""


class StepResult(StepFacts):
    """The output of a step: `result_text` and bounded facts, never the stream."""

    verdict: Verdict
    result_text: Annotated[str, Field(max_length=8192)] | None = None
    """The answer's canonical plain form."""
    result_json: JsonValue = None
    """The checked answer, up to 4 KB."""
    reasons: tuple[str, ...] = ()
    """Why the verdict is not `done`."""
    parsed_by: str | None = None
    """The rung of the answer ladder that read it."""
    checkpoint: str | None = None
    """The snapshot taken when the step was done."""
    rescues: tuple[Rescue, ...] = ()
    """What was kept of the worktree since the step began, oldest first."""
    commit_sha: str | None = None
    checks_passed: int = 0
    """How many of the repository's checks passed on what was committed."""
    plan_sha256: str | None = None
    """The SHA-256 of the plan's file, where the step has found one."""
    plan_bytes: int | None = None
    """Its size."""
    outline: Outline | None = None
    """Of the solution that a pipeline's planner found."""
    findings: tuple[KeyFinding, ...] = ()
    """What looks like a key in the work, the protected paths that it changes, and what a reader suspects."""
    unread: str = ""
    """What a reader has to look at before it is pushed, by its digest: the push waits for that."""
    goes_back_to: Step | None = None
    """The earlier step that has to do more first, with this one's reasons; its own second try would not help."""
    budget_wait: BudgetWait | None = None
    """The budget that the step waits for."""

    @property
    def is_a_persons(self) -> bool:
        """Whether nothing but a person's word is missing: an agent has nothing to mend."""
        return bool(self.findings) and all(finding.kind != "key" for finding in self.findings)


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
    notifies_on: str = ""
    """The queue on which a host tells people of a work order that it could not open; empty: it tells nobody."""
    issue_title: str = ""
    """The title of the issue for which a workspace was not opened, where that was read."""


EndCall.model_rebuild()
FinalizeCall.model_rebuild()
