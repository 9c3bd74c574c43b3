"""What has happened to a work order so far: the work order object and the table that the web UI shows."""

from datetime import datetime
from typing import Final

from septet.contracts.decisions import PreviousRun
from septet.contracts.lanes import PlanningOutcome, SessionSummary
from septet.contracts.names import AGENT_NAMES, Stage, Status, Step, Verdict
from septet.contracts.order import WorkOrderInput
from septet.contracts.row import first_task
from septet.contracts.steps import Progress, StepResult
from septet.contracts.task import Move, Task, TaskError, TaskStep
from septet.contracts.workspace import Workspace
from septet.system.text import table_cell
from septet.system.timestamps import timestamp

_FAILURE_LIMIT: Final = 2000
_UNCONFINED: Final = "*Unconfined*: agents ran without a sandbox. `septet doctor` on their host says why."
_PLAN_WAITS: Final = """\
**Waits for a decision** on the plan `{path}` (SHA-256 `{sha256}`): `septet approve {id}`, or
`septet reject {id} --feedback …`, or the update `approve_plan` or `reject_plan`."""


class WorkOrderState:
    """The work order object as it grows; `progress` is what the next step is told."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.task = Task(id="")
        self.progress = Progress()
        self.running: Step | None = None
        self.history: tuple[Move, ...] = ()
        self._warnings: tuple[str, ...] = ()
        """What the next step's row is to warn of."""
        self.unconfined = False
        """Whether an agent ran without a sandbox."""

    def begin(self, order_id: str, order: WorkOrderInput, now: datetime, waits: Stage | None = None) -> None:
        """Take in what was asked for; `waits` is the stage in which it waits on the board."""
        self.task = first_task(order_id, order, waits, timestamp(now))
        self._moved("", now, "created" if waits else "started")

    @property
    def waits_for_its_turn(self) -> bool:
        """Whether it begins as soon as it has a seat."""
        return self.task.status is Status.PENDING and self.task.stage is Stage.TRIAGED

    def placed(self, stage: Stage, who: str, why: str, now: datetime) -> None:
        """Take the place on the board that a person gives it; in `executing` it begins."""
        before = self.task.stage.value
        self._change(now, status=Status.RUNNING if stage is Stage.EXECUTING else Status.PENDING, stage=stage)
        self._moved(before, now, why, who)

    def planned(self, now: datetime) -> PlanningOutcome:
        """Return what the plan came to: its path, and how long its steps took."""
        seconds = sum(row.duration_seconds for row in self.task.steps)
        return PlanningOutcome(
            plan_path=self.task.plan_path or "", planned_at=timestamp(now), seconds=round(seconds, 3)
        )

    def keeps_to(self, branch: str, now: datetime) -> None:
        """Go on on the branch of the work order before."""
        self.progress = _with(self.progress, branch_name=branch)
        self._change(now, branch_name=branch)

    def resumed(self, said: PreviousRun, now: datetime) -> None:
        """Be taken up again by a reset, with the history of the run before."""
        self._change(now, status=Status.RUNNING, stage=Stage.EXECUTING, error=None)
        self.history = said.history or self.history
        self._moved(said.came_from.value, now, said.why or "retried", said.who)

    def plan_waits(self, now: datetime) -> None:
        """Wait with the plan for a person's word."""
        self._change(now, status=Status.WAITING)
        self._moved(self.task.stage.value, now, f"the plan {self.task.plan_path} waits for approval")

    def goes_on(self, who: str, why: str, now: datetime) -> None:
        """Go on after a person's word."""
        self._change(now, status=Status.RUNNING)
        self._moved(self.task.stage.value, now, why, who)

    def starts(self, now: datetime) -> None:
        """Leave the board's waiting stages: it is its turn."""
        before = self.task.stage.value
        self._change(now, status=Status.RUNNING, stage=Stage.EXECUTING)
        self._moved(before, now, "started")

    def opened(self, workspace: Workspace, now: datetime) -> None:
        """Take in what the host found out about repository and issue."""
        self._change(
            now,
            project=self.task.project or workspace.project,
            title=workspace.issue_title or self.task.title,
            assigned_agent=workspace.agent,
            source=workspace.forge if workspace.issue_number else "text",
            repository_url=workspace.repository,
        )

    def summarised(self, result: SessionSummary, now: datetime) -> None:
        """Take in what the question for a summary took; why there is none, the next step's warnings say."""
        self._change(now, usage=self.task.usage.plus(result.usage))
        self._warnings = (result.warning,) if result.warning else ()

    def step_begins(self, step: Step, now: datetime) -> None:
        """Mark a step as running."""
        self.running = step
        self._change(now)

    def step_ended(self, result: StepResult, attempt: int, now: datetime) -> None:
        """Take in how a step ended; a second try replaces the first one's row."""
        self.running = None
        self.unconfined = self.unconfined or result.sandbox == "none"
        if self._warnings:
            result, self._warnings = (
                result.model_copy(update={"warnings": (*self._warnings, *result.warnings)}),
                (),
            )
        rows = [row for row in self.task.steps if row.step != result.step.value]
        first = next((row for row in self.task.steps if row.step == result.step.value), None)
        self._change(
            now,
            steps=(*rows, _row(result, (first.attempts if first else 0) + 1 if attempt > 1 else attempt)),
            usage=self.task.usage.plus(result.usage),
            rescues=(*self.task.rescues, *(new for new in result.rescues if new not in self.task.rescues)),
        )
        if result.verdict is Verdict.DONE:
            self._learn(result, now)

    @property
    def waits_for_host(self) -> bool:
        """Whether the host that has the workspace is gone."""
        return self.task.status is Status.WAITING and self.task.stage is Stage.BLOCKED

    def host_missing(self, error: TaskError, now: datetime) -> bool:
        """Wait for a host that is gone, and say why; return whether that is news."""
        error = error.of(self.task.id)
        if self.task.error == error:
            return False
        before = self.task.stage
        self._change(now, status=Status.WAITING, stage=Stage.BLOCKED, error=error)
        if before is not Stage.BLOCKED:
            self._moved(before.value, now, error.message)
        return True

    def host_answers(self, now: datetime) -> bool:
        """Go on after a wait for a host; return whether there was one."""
        if not self.waits_for_host:
            return False
        self._change(now, status=Status.RUNNING, stage=Stage.EXECUTING, error=None)
        self._moved(Stage.BLOCKED.value, now, "the host answers again")
        return True

    def moved(self, left: str, host: str, now: datetime) -> bool:
        """Go on on another host."""
        before = self.task.stage.value
        self._change(now, status=Status.RUNNING, stage=Stage.EXECUTING, error=None)
        self._moved(before, now, f"host {left} is gone: the work order goes on on host {host}")
        return True

    def work_ended(self, result: StepResult, attempt: int, now: datetime) -> None:
        """Take in what was kept for a cancelled work order, also where no step was under way."""
        if self.running is not None:
            self.step_ended(result, attempt, now)
        kept = (new for new in result.rescues if new not in self.task.rescues)
        self._change(now, rescues=(*self.task.rescues, *kept))

    def ended(  # noqa: PLR0913 -- what the last entry of a history tells
        self,
        status: Status,
        stage: Stage,
        now: datetime,
        error: TaskError | None = None,
        *,
        who: str = "",
        why: str = "",
    ) -> None:
        """Close the work order."""
        self.running = None
        before = self.task.stage.value
        self._change(now, status=status, stage=stage, error=error and error.of(self.task.id))
        self._moved(before, now, error.message if error else why or status.value, who)

    def details(self) -> str:
        """Return the story as Markdown: what the web UI shows without opening a payload."""
        task = self.task
        lines = [
            f"**{task.id}** · {table_cell(task.project)} · {table_cell(task.title)} · **{task.status.value}**",
            "",
            "| | step | result | seconds | tokens | tries | read by |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        lines += [_details_row(row) for row in task.steps]
        if self.running is not None:
            lines.append(f"| … | {self.running.value} | running | | | | |")
        if self.unconfined:
            lines += ["", _UNCONFINED]
        if task.waits_for_a_decision:
            lines += ["", _PLAN_WAITS.format(path=task.plan_path, sha256=task.plan_sha256, id=task.id)]
        if task.pr_url:
            lines += ["", f"Pull request: {task.pr_url}"]
        for rescue in task.rescues:
            lines += [
                "",
                f"Rescue `{rescue.snapshot}` ({table_cell(rescue.reason)}): `{rescue.patch or 'no patch'}`",
            ]
        if task.error:
            lines += [
                "",
                f"**{task.error.type}**: {table_cell(task.error.message, _FAILURE_LIMIT)}",
                "",
                task.error.remedy,
            ]
        return "\n".join(lines)

    def _learn(self, result: StepResult, now: datetime) -> None:
        text = result.result_text
        match result.step:
            case Step.CLASSIFY_ISSUE:
                self.progress = _with(self.progress, issue_class=text)
                self._change(now, issue_class=text)
            case Step.BUILD_PLAN:
                self.progress = _with(self.progress, planner_answer=text)
            case Step.FIND_PLAN_FILE if text != "0":
                self.progress = _with(self.progress, plan_path=text)
                self._change(now, plan_path=text, plan_sha256=result.plan_sha256)
            case Step.GENERATE_BRANCH:
                self.progress = _with(self.progress, branch_name=text)
                self._change(now, branch_name=text)
            case Step.CREATE_COMMIT:
                self.progress = _with(self.progress, commit_sha=result.commit_sha)
                self._change(now, commit_sha=result.commit_sha)
            case Step.CREATE_PULL_REQUEST:
                self._change(now, pr_url=text)
            case _:
                pass

    def _moved(self, before: str, now: datetime, why: str, who: str = "") -> None:
        told = {"when": timestamp(now), "from": before, "to": self.task.stage.value, "why": why}
        move = Move(**told, **({"who": who} if who else {}))
        self.history = (*self.history, move)

    def _change(self, now: datetime, **values: object) -> None:
        self.task = self.task.model_copy(update={**values, "updated_at": timestamp(now)})


def _with(progress: Progress, **values: object) -> Progress:
    return Progress.model_validate({**progress.model_dump(), **values}, strict=False)


def _row(result: StepResult, attempts: int) -> TaskStep:
    return TaskStep(
        step=result.step.value,
        agent_name=AGENT_NAMES[result.step],
        agent=result.agent,
        success=result.verdict is Verdict.DONE,
        output=result.result_text,
        result_json=result.result_json,
        error_message="; ".join(result.reasons) or None if result.verdict is not Verdict.DONE else None,
        duration_seconds=result.duration_seconds,
        session_id=result.session_id,
        timestamp=result.timestamp,
        attempts=attempts,
        parsed_by=result.parsed_by,
        recovered_by=result.recovered_by,
        warnings=result.warnings,
        usage=result.usage,
        files_changed=result.files_changed,
        rescue=result.rescues[-1] if result.rescues else None,
    )


def _details_row(row: TaskStep) -> str:
    mark = "✓" if row.success else "✗"
    found = row.output if row.success else row.error_message
    tokens = row.usage.input_tokens + row.usage.output_tokens
    read_by = " · ".join(part for part in (row.parsed_by, row.recovered_by) if part)
    return (
        f"| {mark} | {row.step} | {table_cell(found or '')} | {row.duration_seconds:.1f} | {tokens:,} "
        f"| {row.attempts} | {read_by} |"
    )
