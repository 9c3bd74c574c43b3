"""The inputs and results of the activities that run steps."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from septet.contracts.amounts import BudgetWait
from septet.contracts.facts import FileChange, KeyFinding, Rescue, Usage
from septet.contracts.names import READ_OUTGOING, REWORK, IssueClass, Step, Verdict
from septet.contracts.order import StepSettings, Timeouts
from septet.contracts.rework import Rework
from septet.contracts.solution import Outline
from septet.contracts.wire import Wire
from septet.contracts.workspace import Workspace


class Progress(Wire):
    """The results of the previous steps."""

    issue_class: IssueClass | None = None
    planner_answer: str | None = None
    """The answer of `build_plan`: the path that the planner gave."""
    plan_path: str | None = None
    plan_sha256: str | None = None
    """The SHA-256 of the plan's file that the step found, and that the person who approves the plan saw."""
    plan_bytes: int | None = None
    """The size of the plan's file in bytes."""
    branch_name: str | None = None
    commit_sha: str | None = None


class ReaderReport(Wire):
    """What a reader found in the outgoing changes."""

    digest: str
    """The digest of the commits, the branch and the texts that were read."""
    findings: tuple[KeyFinding, ...] = ()


class StepCall(Wire):
    """The input of each of the seven steps."""

    step: Step
    workspace: Workspace
    progress: Progress = Progress()
    attempt: int = 1
    """1, or 2 for the second try of the step."""
    reasons: tuple[str, ...] = ()
    """A person's feedback, and the reasons why the first try was not accepted."""
    starts_from: str = ""
    """The snapshot with which the step begins; a reset returns to this snapshot."""
    model: str | None = None
    limits: Timeouts = Timeouts()
    settings: StepSettings = StepSettings()
    """The work order's settings for this step alone."""
    draft: bool = False
    labels: tuple[str, ...] = ()
    pipeline: str = ""
    """The pipeline of the work order; empty if the work order belongs to no pipeline."""
    session_id: str | None = None
    """The session to continue; `None` for a new session."""
    approve_plan: bool = False
    """Whether the plan waits for a person."""
    plan_comment: bool = False
    """Whether a waiting plan is posted to the issue, even if the repository requests no comments."""
    allowed_findings: tuple[str, ...] = ()
    """The ids of the findings that a person allowed."""
    project: str = ""
    budget: str = ""
    """The work order's budget in its written form; empty if the work order has no budget."""
    pipeline_budget: str = ""
    pays_from: str = ""
    """The pipeline whose budget still counts the agents' use after a reset took the work order out of the
    pipeline."""
    waits_for_budget: bool = False
    """Whether the workflow waits after the verdict `over_budget`; otherwise Temporal retries the activity."""
    rework: Rework | None = None
    """The round on the pull request that the agent works on; all other fields are as in a call of
    `implement_plan`."""
    reading: ReaderReport | None = None
    """The reader's report on the outgoing changes of this call."""
    settles: str = ""
    """The id of the activity whose agent already answered this call: the host reads the answer again and starts no
    agent."""
    reads: str = ""
    """The digest of the outgoing changes that a second agent reads; empty unless this is the call of the second
    agent."""

    @property
    def name(self) -> str:
        """The call's name in records and folders: the step's name, `rework` or `read_outgoing`."""
        if self.reads:
            return READ_OUTGOING
        return REWORK if self.rework is not None else self.step.value

    @property
    def table(self) -> str:
        """The name of the call's table in a repository's settings: the step's name, or `read_outgoing`."""
        return READ_OUTGOING if self.reads else self.step.value

    @property
    def number(self) -> int:
        """The step's position, from 1 to 7; a round counts as 8."""
        return len(Step) + 1 if self.rework is not None else self.step.number

    @property
    def shares_session(self) -> bool:
        """Whether later turns continue this turn's session, as in a lane or with shared sessions."""
        return not self.reads and (bool(self.pipeline) or self.workspace.sessions == "shared")

    @property
    def keeps_process(self) -> bool:
        """Whether the agent's process may stay warm for a later turn; a round's process never stays."""
        return self.shares_session and self.rework is None


class FinalizeCall(Wire):
    """A request to a step's session to give its answer again, as JSON."""

    call: StepCall
    session_id: str
    reasons: tuple[str, ...]
    """The mistakes in the previous answer, for the prompt."""
    attempt: int = 1
    """The number of the request: 1, or 2 for the second request, which has another prompt."""
    result: "StepResult"
    """The step's result, which the answer completes."""


class EndCall(StepCall):
    """The input of the activity that ends a step's try when the step's own activity could not."""

    earlier: "StepResult | None" = None
    """The results of the try's earlier activities, added up; `None` if none returned a result."""
    activity_id: str | None = None
    """The activity that did not return; empty if none was running, `None` if it is unknown."""

    @classmethod
    def of(cls, call: StepCall, earlier: "StepResult | None", activity_id: str | None) -> "EndCall":
        """Return the input of the activity that ends the try of `call`."""
        facts = {name: getattr(call, name) for name in StepCall.model_fields}
        return cls(**facts, earlier=earlier, activity_id=activity_id)


class StepFacts(Wire):
    """The facts of a step that a finalizer does not change."""

    step: Step
    agent: str = ""
    login: str = ""
    """The name of the further login that the step's agent used; empty for the worker's own login."""
    model: str | None = None
    session_id: str | None = None
    context_tokens: int = 0
    """In a pipeline's lane, the session's length in tokens, as the CLI reports or the host estimates it."""
    recovered_by: str | None = None
    """How the result was recovered after an error: `adopt`, `read`, `resume`, `rerun`, or `finalizer`."""
    agent_starts: int = 1
    exit_code: int | None = None
    duration_seconds: float = 0.0
    timestamp: str = ""
    """The start of the step: ISO 8601, UTC."""
    usage: Usage = Usage()
    files_changed: tuple[FileChange, ...] = ()
    """The first hundred changed files."""
    files_changed_count: int = 0
    warnings: tuple[str, ...] = ()
    run: str = ""
    """The run's folder with prompt, stream and record, relative to the state directory."""
    sandbox: str = ""
    """The agent's sandbox: `bwrap` or `none`; empty if no agent started."""


class StepResult(StepFacts):
    """The result of a step: its `result_text` and facts of limited size, never the agent's stream."""

    verdict: Verdict
    result_text: Annotated[str, Field(max_length=8192)] | None = None
    """The answer as plain text, such as a path or a name."""
    result_json: JsonValue = None
    """The checked answer, up to 4 KB."""
    reasons: tuple[str, ...] = ()
    """Why the verdict is not `done`."""
    parsed_by: str | None = None
    """How the answer was read; see `septet.answers.ladder`."""
    checkpoint: str | None = None
    """The snapshot taken when the step was done."""
    rescues: tuple[Rescue, ...] = ()
    """The rescues of the worktree since the step began, oldest first."""
    commit_sha: str | None = None
    checks_passed: int = 0
    """The number of the repository's checks that passed on the commit."""
    plan_sha256: str | None = None
    """The SHA-256 of the plan's file, if the step found one."""
    plan_bytes: int | None = None
    """The size of the plan's file in bytes."""
    outline: Outline | None = None
    """The outline of the solution of a pipeline's planner."""
    findings: tuple[KeyFinding, ...] = ()
    """Possible keys in the work, changes of protected paths, and a reader's suspicions."""
    unread: str = ""
    """The digest of the changes that a reader must read; the push waits for the reader."""
    goes_back_to: Step | None = None
    """The earlier step to repeat, with this step's reasons, because a second try of this step would not help."""
    budget_wait: BudgetWait | None = None
    """The budget that the step waits for."""

    @property
    def is_a_persons(self) -> bool:
        """Whether only a person's decision is missing, and an agent has nothing to correct."""
        return bool(self.findings) and all(finding.kind != "key" for finding in self.findings)


class SweepCall(Wire):
    """A request to the janitor of a host to clean up once."""

    server_now: datetime
    """The time by the Temporal server's clock."""


class FailureFacts(Wire):
    """The facts that an activity's error carries besides its message."""

    remedy: str = ""
    """What a person can do about the error."""
    result: StepResult | None = None
    """The known part of the step's result."""
    notifies_on: str = ""
    """The queue of the host that notifies people if it could not open the workspace; empty: the host sends no
    notification."""
    issue_title: str = ""
    """The issue's title, if it was read before the workspace failed to open."""


EndCall.model_rebuild()
FinalizeCall.model_rebuild()
