"""The queries, the updates with their validators, and the signals of a work order."""

from collections.abc import Iterable
from typing import Final

from temporalio import workflow

from septet.contracts.decisions import FindingsDecision, MoveCall, PlanDecision, PreviousRun, RetryCall
from septet.contracts.lanes import LaneGrant, Role
from septet.contracts.names import Step
from septet.contracts.task import Move, Task, TaskStep
from septet.contracts.workspace import HostSilence
from septet.pipelines.inputs import IssueCall
from septet.system.text import table_cell
from workflows.gates import FINDINGS_UPDATES, BudgetGate, FindingsGate, PlanGate
from workflows.hosts.host_watch import HostWatch
from workflows.notifications import Notifications
from workflows.wire.failures import refusal
from workflows.wire.inputs import reads_input
from workflows.wire.search_attributes import Row
from workflows.work_order.decisions import Decisions
from workflows.work_order.lane_visit import LaneVisit
from workflows.work_order.seat import Seat
from workflows.work_order.state import WorkOrderState

_FAILURE_LIMIT: Final = 2000
_SPACE: Final = "\u00a0"
"""A no-break space, at which the web UI does not break the line of a cell."""
_GAP: Final = 2 * _SPACE
"""What ends each cell, because the web UI sets no space between columns."""
_PLAN_WAITS: Final = """\
**Waiting for your decision** on the plan `{path}` (SHA-256 `{sha256}`): `septet approve {id}`, or
`septet reject {id} --feedback …`, or the update `approve_plan` or `reject_plan`."""


def format_details(task: Task, running_step: Step | None) -> str:
    """Return a work order as Markdown, for Temporal's web UI."""
    lines = [
        f"**{task.id}** · {table_cell(task.project)} · {table_cell(task.title)} · **{task.status.value}**",
        "",
        _row("step", "result", "took", "note"),
        "| --- | --- | --- | --- |",
    ]
    lines += [_format_row(row) for row in task.steps]
    if running_step is not None:
        lines.append(_row(f"…{_SPACE}{running_step.value}", "running", "", ""))
    if task.unconfined:
        lines += ["", f"*Unconfined*: {task.unconfined}"]
    if task.waits_for_a_decision:
        lines += ["", _PLAN_WAITS.format(path=task.plan_path, sha256=task.plan_sha256, id=task.id)]
    if task.budget is not None:
        lines += ["", f"**Waiting for its budget**: {task.question}"]
    if task.findings:
        lines += ["", f"**Waiting for your decision**. {task.findings_question} {FINDINGS_UPDATES}"]
    if task.plan_answer:
        lines += ["", f"Plan: {task.plan_path}. {task.plan_answer}"]
    if task.pr_url:
        lines += ["", f"Pull request: {task.pr_url}"]
    for rescue in task.rescues:
        lines += ["", f"Rescue `{rescue.snapshot}` ({table_cell(rescue.reason)}): `{rescue.patch or 'no patch'}`"]
    if task.error:
        message = table_cell(task.error.message, _FAILURE_LIMIT)
        lines += ["", f"**{task.error.type}**: {message}"]
        lines += ["", task.error.remedy] if task.error.remedy else []
    return "\n".join(lines)


def _format_row(row: TaskStep) -> str:
    mark = "✓" if row.success else "✗"
    result = row.output if row.success else row.error_message
    tokens = row.usage.tokens
    files = len(row.files_changed)
    took = (
        f"{row.duration_seconds:.1f}{_SPACE}s",
        f"{tokens:,}{_SPACE}tokens" if tokens else "",
        f"{files}{_SPACE}file{'s' * (files != 1)}" if files else "",
    )
    note = (
        f"{row.attempts} attempts" if row.attempts > 1 else "",
        f"answer {row.reading}" if row.reading else "",
        f"recovered by {row.recovered_by}" if row.recovered_by else "",
    )
    return _row(
        f"{mark}{_SPACE}{row.step}", table_cell((result or "").partition("\n\n")[0]), _join(took), _join(note)
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(f'{cell}{_GAP}' if cell else cell for cell in cells)} |"


def _join(parts: Iterable[str]) -> str:
    return ", ".join(part for part in parts if part)


_ANYBODY = RetryCall()


class WorkOrderHandlers:
    """The handlers of one work order; a refused update leaves no trace."""

    def __init__(self) -> None:
        self._state = WorkOrderState()
        self._row = Row()
        self._notifications = Notifications()
        self._hosts = HostWatch(self._state, self._show)
        self._decisions = Decisions(self._state, self._hosts, self._show)
        self._plan_gate = PlanGate(self._state, self._show)
        self._findings_gate = FindingsGate(self._state, self._show)
        self._budget_gate = BudgetGate(self._state, self._show)
        self._seat = Seat()
        self._visit = LaneVisit(self._hosts)

    @workflow.query(description="The work order object, as every face shows it.")
    def work_order(self) -> Task:
        """Return the work order as people see it."""
        return self._state.task

    @workflow.query(description="The steps so far.")
    def steps(self) -> tuple[TaskStep, ...]:
        """Return the work order's steps."""
        return self._state.task.steps

    @workflow.query(description="The step in progress, or an empty string.")
    def running_step(self) -> str:
        """Return the name of the running step; empty if no step runs."""
        return self._state.running_step or ""

    @workflow.query(description="The stages it has been through: when, from, to, why.")
    def history(self) -> tuple[Move, ...]:
        """Return the work order's moves between stages, oldest first."""
        return self._state.history

    @workflow.update(description="Move it on the board. A refusal lists where it may move from here.")
    @reads_input("move", MoveCall)
    async def move(self, call: MoveCall) -> Task:
        """Move the work order to another stage, and return the moved work order."""
        return await self._decisions.make(call)

    @move.validator
    @reads_input("move", MoveCall)
    def _may_move(self, call: MoveCall) -> None:
        self._decisions.check(call)

    @workflow.update(description="Approve the plan that waits for approval, named by the SHA-256 of its file.")
    @reads_input("approve_plan", PlanDecision)
    def approve_plan(self, decision: PlanDecision) -> Task:
        """Approve the plan, let the work continue, and return the work order."""
        return self._plan_gate.decide(decision, rejects=False)

    @approve_plan.validator
    @reads_input("approve_plan", PlanDecision)
    def _may_approve(self, decision: PlanDecision) -> None:
        self._plan_gate.check(decision, rejects=False)

    @workflow.update(
        description="Reject the plan that waits for approval: the agent plans again with your feedback."
    )
    @reads_input("reject_plan", PlanDecision)
    def reject_plan(self, decision: PlanDecision) -> Task:
        """Reject the plan, let the agent plan once more, and return the work order."""
        return self._plan_gate.decide(decision, rejects=True)

    @reject_plan.validator
    @reads_input("reject_plan", PlanDecision)
    def _may_reject(self, decision: PlanDecision) -> None:
        self._plan_gate.check(decision, rejects=True)

    @workflow.update(description="Allow findings that may be pushed, named by their ids.")
    @reads_input("approve_findings", FindingsDecision)
    def approve_findings(self, decision: FindingsDecision) -> Task:
        """Allow the findings, let the work continue, and return the work order."""
        return self._findings_gate.decide(decision, rejects=False)

    @approve_findings.validator
    @reads_input("approve_findings", FindingsDecision)
    def _may_let_pass(self, decision: FindingsDecision) -> None:
        self._findings_gate.check(decision, rejects=False)

    @workflow.update(description="Have the agent remove what was found, with your feedback.")
    @reads_input("reject_findings", FindingsDecision)
    def reject_findings(self, decision: FindingsDecision) -> Task:
        """Reject the findings, let the step run again, and return the work order."""
        return self._findings_gate.decide(decision, rejects=True)

    @reject_findings.validator
    @reads_input("reject_findings", FindingsDecision)
    def _may_have_taken_out(self, decision: FindingsDecision) -> None:
        self._findings_gate.check(decision, rejects=True)

    @workflow.update(description="Continue a work order that is blocked on the board, or waits for a lost host.")
    @reads_input("retry", RetryCall)
    def retry(self, call: RetryCall = _ANYBODY) -> Task:
        """Let a blocked work order continue, and return the work order."""
        return self._decisions.retry(call)

    @retry.validator
    @reads_input("retry", RetryCall)
    def _may_retry(self, call: RetryCall = _ANYBODY) -> None:
        self._decisions.check_retry(call)

    @workflow.update(description="A host is dead: continue on another one now. Some work may be paid for twice.")
    @reads_input("host_gone", str)
    def host_gone(self, host: str) -> None:
        """Give up at once a host that a person reports dead, even if its agents may still run."""
        self._hosts.give_up(host)

    @host_gone.validator
    @reads_input("host_gone", str)
    def _is_on(self, host: str) -> None:
        """Refuse a report about a host that does not have the workspace."""
        if not self._hosts.holds(host):
            raise refusal(f"host {host} does not have the workspace")

    @workflow.signal(description="The board says that it is its turn.")
    async def begin(self) -> None:
        """Take the seat, or give it back if the work order no longer waits for it."""
        await self._seat.give()

    @workflow.signal(description="The account of a budget says that there is room again.")
    def budget_open(self, scope: str) -> None:
        """Let work that waits for a budget reserve again."""
        del scope
        self._budget_gate.open()

    @workflow.signal(description="The pipeline has given it a lane.")
    async def take_lane(self, grant: LaneGrant) -> None:
        """Take the lane, or give it back if the work order no longer waits for a lane."""
        if grant.role is Role.EXECUTOR or await self._seat.give():
            self._visit.take_grant(grant)

    @workflow.signal(description="The pipeline asks for another plan.")
    def plan_again(self, call: IssueCall) -> None:
        """Plan once more as soon as the planner's lane is free."""
        self._visit.plan_again(call)

    @workflow.signal(description="Check now what it waits for, instead of at the next interval.")
    def nudge(self) -> None:
        """At once: probe the workspace's host, check the awaited work orders, and reserve budgets again."""
        self._hosts.is_nudged = True
        self._seat.look_again()
        self._budget_gate.open()

    @workflow.signal(description="Other hosts report that no worker of a host has answered for a while.")
    def host_silent(self, silence: HostSilence) -> None:
        """Record that a host is silent; probe the host if it has the workspace."""
        self._hosts.note_silence(silence)

    @workflow.signal(description="A worker of a silent host answers again.")
    def host_back(self, host: str) -> None:
        """Record that a host answers again; work that waits for it continues."""
        self._hosts.note_return(host)

    @workflow.signal(description="A reset has restarted it; sent right after the reset.")
    def resumed(self, previous: PreviousRun) -> None:
        """Record who reset the work order and why, with the feedback for the agent."""
        self._decisions.resume(previous)

    @workflow.signal(
        description="A reset has restarted it so that it can be cancelled; sent right after the reset."
    )
    async def give_up(self, previous: PreviousRun) -> None:
        """Record who reset the work order and why, and cancel the work order."""
        await self._decisions.give_up(previous)

    def _show(self) -> None:
        """Publish the work order's state: in the web UI, in its row, and by notifications."""
        workflow.set_current_details(format_details(self._state.task, self._state.running_step))
        self._row.write(self._state.task, self._hosts.attributes)
        self._notifications.note(self._state.task, self._hosts.workspace)
