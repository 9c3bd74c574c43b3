"""The state of a work order."""

from datetime import datetime

from septet.contracts.amounts import BudgetWait
from septet.contracts.decisions import PreviousRun
from septet.contracts.facts import KeyFinding, Rescue, tell_findings
from septet.contracts.lanes import PlanningOutcome, SessionSummary
from septet.contracts.names import AGENT_NAMES, Stage, Status, Step, Verdict
from septet.contracts.order import WorkOrderInput
from septet.contracts.steps import Progress, StepResult
from septet.contracts.task import UNCONFINED, Move, Task, TaskError, TaskStep
from septet.contracts.task_rows import first_task
from septet.contracts.workspace import Workspace
from septet.system.text import timestamp


class WorkOrderState:
    """The work order as people see it, and `progress`, which is the input of the next step."""

    def __init__(self) -> None:
        """Begin empty; `task.id` is set once the input was read."""
        self.task = Task(id="")
        self.progress = Progress()
        self.running_step: Step | None = None
        self.history: tuple[Move, ...] = ()
        self._warnings: tuple[str, ...] = ()

    def begin(self, order_id: str, order: WorkOrderInput, now: datetime, waits_in: Stage | None = None) -> None:
        """Record the input; with `waits_in`, the work order waits in that stage of the board."""
        self.task = first_task(order_id, order, waits_in, timestamp(now))
        self._add_move("", now, "created" if waits_in else "started")

    @property
    def waits_for_its_turn(self) -> bool:
        """Whether the work order begins as soon as it has a seat."""
        return self.task.status is Status.PENDING and self.task.stage is Stage.TRIAGED

    def place(self, stage: Stage, who: str, why: str, now: datetime) -> None:
        """Move to the stage that a person chose; in stage `executing`, the work order begins."""
        status = Status.RUNNING if stage is Stage.EXECUTING else Status.PENDING
        self._move(now, why, who, status=status, stage=stage)

    def planning_outcome(self, now: datetime) -> PlanningOutcome:
        """Return the plan's path, and how long the planning steps took."""
        seconds = sum(row.duration_seconds for row in self.task.steps)
        return PlanningOutcome(
            plan_path=self.task.plan_path or "", planned_at=timestamp(now), seconds=round(seconds, 3)
        )

    def keep_to_branch(self, branch: str, now: datetime) -> None:
        """Record that the work continues on a branch that exists already."""
        self.progress = _update_progress(self.progress, branch_name=branch)
        self._change(now, branch_name=branch)

    def resume(self, previous: PreviousRun, now: datetime) -> None:
        """Continue after a reset, with the history and the usage of the previous run.

        A work order that waited on the board moves to `triaged`.
        """
        usage = max(self.task.usage, previous.usage, key=lambda used: used.tokens)
        waits = self.task.status is Status.PENDING
        stage = Stage.TRIAGED if waits else Stage.EXECUTING
        status = Status.PENDING if waits else Status.RUNNING
        self._change(now, status=status, stage=stage, error=None, usage=usage)
        self.history = previous.history or self.history
        retried = f"retried: {previous.feedback}" if previous.feedback else "retried"
        self._add_move(previous.came_from.value, now, previous.why or retried, previous.who)

    def wait_for_decision(self, now: datetime) -> None:
        """Record the wait for a person's decision on the plan."""
        self._move(now, f"the plan {self.task.plan_path} waits for approval", status=Status.WAITING)

    def wait_for_findings(self, findings: tuple[KeyFinding, ...], now: datetime) -> None:
        """Record the wait for a person's decision on findings."""
        self._move(now, tell_findings(findings), status=Status.WAITING, findings=findings)

    def wait_for_budget(self, wait: BudgetWait, now: datetime) -> None:
        """Record the wait for a budget."""
        self._move(now, wait.message, status=Status.WAITING, budget=wait)

    def go_on(self, who: str, why: str, now: datetime) -> None:
        """Record the end of a wait for a person or a budget."""
        self._move(now, why, who, status=Status.RUNNING, findings=(), budget=None)

    def start(self, now: datetime) -> None:
        """Record that the work begins, and leave the stage in which the work order waited."""
        self.place(Stage.EXECUTING, "", "started", now)

    def take_in_workspace(self, workspace: Workspace, now: datetime) -> None:
        """Record the workspace, and what its host found out about repository and issue."""
        self._change(
            now,
            project=self.task.project or workspace.project,
            title=workspace.issue_title or self.task.title,
            assigned_agent=workspace.agent,
            source=_source(workspace),
            repository_url=workspace.repository,
        )

    def learn_title(self, title: str) -> None:
        """Record the issue's title, unless a title is known already."""
        self.task = self.task.model_copy(update={"title": self.task.title or title})

    def take_in_summary(self, result: SessionSummary, now: datetime) -> None:
        """Add the use of the turn that summarised a session; without a summary, the next step gets a warning."""
        self._change(now, usage=self.task.usage.plus(result.usage))
        self._warnings = (result.warning,) if result.warning else ()

    def begin_step(self, step: Step, now: datetime) -> None:
        """Record that a step runs now."""
        self.running_step = step
        self._change(now)

    def end_step(self, result: StepResult, attempt: int, now: datetime) -> None:
        """Record a step's result in `task.steps`; a second try replaces the entry of the first try."""
        self.running_step = None
        result = result.model_copy(update={"warnings": (*self._warnings, *result.warnings)})
        self._warnings = ()
        rows = [row for row in self.task.steps if row.step != result.step.value]
        first = next((row for row in self.task.steps if row.step == result.step.value), None)
        before = first.attempts if first is not None and attempt > 1 else 0
        self._change(
            now,
            steps=(*rows, _step_row(result, max(before + result.agent_starts, attempt), now)),
            usage=self.task.usage.plus(result.usage),
            unconfined=UNCONFINED.get(result.sandbox, "") or self.task.unconfined,
            rescues=self._rescues_with(result),
        )
        if result.verdict is Verdict.DONE:
            self._learn(result, now)

    @property
    def waits_for_host(self) -> bool:
        """Whether the work order waits for a gone host."""
        return self.task.status is Status.WAITING and self.task.stage is Stage.BLOCKED

    def wait_for_host(self, error: TaskError, now: datetime) -> bool:
        """Record the wait for a gone host with its reason; return whether this changes the record."""
        error = error.of(self.task.id)
        if self.task.error == error:
            return False
        before = self.task.stage
        self._change(now, status=Status.WAITING, stage=Stage.BLOCKED, error=error)
        if before is not Stage.BLOCKED:
            self._add_move(before.value, now, error.message)
        return True

    def end_wait_for_host(self, now: datetime) -> bool:
        """Record the end of a wait for a host; return whether such a wait was recorded."""
        if not self.waits_for_host:
            return False
        self._move(now, "the host answers again", status=Status.RUNNING, stage=Stage.EXECUTING, error=None)
        return True

    def move_to_host(self, lost_host: str, host: str, now: datetime) -> bool:
        """Record that the work order continues on another host; return `True`, because the record changes."""
        why = f"host {lost_host} is gone: the work order continues on host {host}"
        self._move(now, why, status=Status.RUNNING, stage=Stage.EXECUTING, error=None)
        return True

    def end_work(self, result: StepResult, attempt: int, now: datetime) -> None:
        """Record the rescue of a cancelled work order, even if no step was running."""
        if self.running_step is not None:
            self.end_step(result, attempt, now)
        self._change(now, rescues=self._rescues_with(result))

    def close(  # noqa: PLR0913 -- the last entry of a history needs each
        self,
        status: Status,
        stage: Stage,
        now: datetime,
        error: TaskError | None = None,
        *,
        who: str = "",
        why: str = "",
    ) -> None:
        """Close the work order with a stage and a status, and with the error that ended it, if any."""
        self.running_step = None
        why = error.message if error else why or status.value
        error = error and error.of(self.task.id)
        self._move(now, why, who, status=status, stage=stage, findings=(), budget=None, error=error)

    def _learn(self, result: StepResult, now: datetime) -> None:
        text = result.result_text
        match result.step:
            case Step.CLASSIFY_ISSUE:
                self.progress = _update_progress(self.progress, issue_class=text)
                self._change(now, issue_class=text)
            case Step.BUILD_PLAN:
                self.progress = _update_progress(self.progress, planner_answer=text)
            case Step.FIND_PLAN_FILE if text != "0":
                self.progress = _update_progress(self.progress, plan_path=text, **_plan_facts(result))
                self._change(now, plan_path=text, **_plan_facts(result))
            case Step.GENERATE_BRANCH:
                self.progress = _update_progress(self.progress, branch_name=text)
                self._change(now, branch_name=text)
            case Step.CREATE_COMMIT:
                self.progress = _update_progress(self.progress, commit_sha=result.commit_sha)
                self._change(now, commit_sha=result.commit_sha)
            case Step.CREATE_PULL_REQUEST:
                commit_sha = result.commit_sha or self.progress.commit_sha  # on a base that was written anew
                self.progress = _update_progress(self.progress, commit_sha=commit_sha)
                self._change(now, pr_url=text, commit_sha=commit_sha)
            case _:
                pass

    def _rescues_with(self, result: StepResult) -> tuple[Rescue, ...]:
        return (*self.task.rescues, *(new for new in result.rescues if new not in self.task.rescues))

    def _move(self, now: datetime, why: str, who: str = "", **values: object) -> None:
        before = self.task.stage.value
        self._change(now, **values)
        self._add_move(before, now, why, who)

    def _add_move(self, before: str, now: datetime, why: str, who: str = "") -> None:
        values = {"when": timestamp(now), "from": before, "to": self.task.stage.value, "why": why}
        move = Move(**values, **({"who": who} if who else {}))
        self.history = (*self.history, move)

    def _change(self, now: datetime, **values: object) -> None:
        self.task = self.task.model_copy(update={**values, "updated_at": timestamp(now)})


def _plan_facts(result: StepResult) -> dict[str, object]:
    return {"plan_sha256": result.plan_sha256, "plan_bytes": result.plan_bytes}


def _update_progress(progress: Progress, **values: object) -> Progress:
    return Progress.model_validate({**progress.model_dump(), **values}, strict=False)


def _source(workspace: Workspace) -> str:
    if workspace.tracker is not None:
        return workspace.tracker.tracker
    return workspace.forge if workspace.issue_number else "text"


def _step_row(result: StepResult, attempts: int, now: datetime) -> TaskStep:
    return TaskStep(
        step=result.step.value,
        agent_name=AGENT_NAMES[result.step],
        agent=result.agent,
        login=result.login,
        success=result.verdict is Verdict.DONE,
        output=result.result_text,
        result_json=result.result_json,
        error_message="; ".join(result.reasons) or None if result.verdict is not Verdict.DONE else None,
        duration_seconds=result.duration_seconds,
        session_id=result.session_id,
        timestamp=result.timestamp,
        ended_at=timestamp(now),
        attempts=attempts,
        parsed_by=result.parsed_by,
        recovered_by=result.recovered_by,
        warnings=result.warnings,
        usage=result.usage,
        files_changed=result.files_changed,
        rescue=result.rescues[-1] if result.rescues else None,
        checks_passed=result.checks_passed,
    )
