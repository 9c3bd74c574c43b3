"""Run one try of a step: the step's activity, its finalizers, and a reader if the push needs one.

The use of all these activities adds up, even if the try waits for budgets or is cancelled.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from temporalio.common import Priority

from septet.contracts.facts import Usage
from septet.contracts.names import AGENT_NAMES, Verdict
from septet.contracts.order import StepSettings
from septet.contracts.steps import EndCall, FinalizeCall, ReaderReport, StepCall, StepResult
from workflows.gates import BudgetGate
from workflows.hosts.gone_host import Running
from workflows.hosts.host_watch import AnyStepCall, HostWatch
from workflows.wire.activity_stubs import END_WORK, FINALIZE_JSON, READ_OUTGOING, REWORK, STEPS
from workflows.wire.cancellation import is_to_end
from workflows.wire.policies import end_options, step_options


class ActivityIds:
    """Makes the unique ids of a workflow run's activities: `<activity>-<n>` for the n-th activity of a type."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def of(self, activity: str) -> str:
        """Return the next id for an activity of this name."""
        self._counts[activity] += 1
        return f"{activity}-{self._counts[activity]}"


def reader_of(call: StepCall, unread: StepResult) -> StepCall:
    """Return the call of a reader in a new session; `unread` is the result that waits for the reader."""
    return call.model_copy(
        update={
            "reads": unread.unread,
            "reading": None,
            "settles": "",
            "session_id": None,
            "reasons": (),
            "attempt": 1,
            "settings": StepSettings(),
            "starts_from": unread.checkpoint or call.starts_from,
            "pipeline": "",
            "pays_from": call.pipeline or call.pays_from,
        }
    )


def going_on(
    last: StepCall | FinalizeCall, activity_id: str, so_far: StepResult, reading: ReaderReport
) -> StepCall | FinalizeCall:
    """Return the call that continues a step with the answer so far, after the reader's report.

    Args:
        activity_id: The activity whose agent gave the answer.
        so_far: The step's result until now, with the use of all its activities.
    """
    call = step_of(last)
    update = {"reading": reading, "settles": activity_id, "starts_from": so_far.checkpoint or call.starts_from}
    call = call.model_copy(update=update)
    if not isinstance(last, FinalizeCall):
        return call
    result = so_far.model_copy(update={"verdict": Verdict.UNPARSED, "unread": ""})
    return last.model_copy(update={"call": call, "result": result})


def let_pass(waiting: StepCall | FinalizeCall, call: StepCall) -> StepCall | FinalizeCall | None:
    """Return the call `waiting` with the findings that `call` allows; `None` if `call` is of another step."""
    step = step_of(waiting)
    if (step.step, step.rework, step.progress) != (call.step, call.rework, call.progress):
        return None
    step = step.model_copy(update={"allowed_findings": call.allowed_findings, "workspace": call.workspace})
    if not isinstance(waiting, FinalizeCall):
        return step
    unused = waiting.result.model_copy(update={"usage": Usage(), "duration_seconds": 0.0})  # already counted
    return waiting.model_copy(update={"call": step, "result": unused})


def step_of(call: StepCall | FinalizeCall) -> StepCall:
    """Return the call of the step; for a finalizer's call, that is the call inside it."""
    return call.call if isinstance(call, FinalizeCall) else call


_GOES_ON: Final = (
    "The work was paused for its budget, and continues now. Look at the worktree (`git status`, `git diff`) "
    "before you do anything twice."
)
_READINGS: Final = 3
"""How often a reader may read the content for one answer; a new base or host changes the content."""
_TRIES: Final = 2
"""The most turns of a reader for one reading; the second turn follows an unreadable report."""


class StepTaker:
    """Runs steps on the host of a workspace, and ends a cancelled step."""

    def __init__(self, hosts: HostWatch, ids: ActivityIds, gate: BudgetGate) -> None:
        self._hosts = hosts
        self._ids = ids
        self._gate = gate
        self._known: StepResult | None = None
        self._activity_id: str | None = ""
        """The id of the running activity: empty if none runs, `None` if the id is unreadable."""
        self.is_under_way = False
        self._answered: tuple[StepCall | FinalizeCall, str] | None = None
        """The step's last call, and the id of the activity whose agent gave the answer."""
        self._held: tuple[StepCall | FinalizeCall, frozenset[str]] | None = None
        """The call that continues once a person allows the reader's findings, and the ids of these findings."""

    async def take(self, call: StepCall, priority: Priority) -> StepResult:
        """Run one step with its finalizers and its reader, or continue after a person allowed its findings."""
        self._known, self._activity_id, self.is_under_way = None, "", True
        held, self._held = self._held, None
        is_let_pass = held is not None and held[1] <= set(call.allowed_findings)
        result = await self._ask((let_pass(held[0], call) if held and is_let_pass else None) or call, priority)
        for _ in range(_READINGS):
            if not result.unread or self._answered is None:
                break
            result = await self._have_it_read(call, result, *self._answered, priority)
        self.is_under_way = False
        return result

    async def _ask(self, call: StepCall | FinalizeCall, priority: Priority) -> StepResult:
        """Run a call's activity; if the answer is unreadable, run the finalizer, at most twice."""
        start, finalize = partial(self._start, priority), partial(self._start_finalizer, priority)
        if isinstance(call, FinalizeCall):
            result = await self._carry_out(call, finalize)
        else:
            result = await self._carry_out(call, start)
        step = step_of(call).model_copy(update={"settles": ""})
        for attempt in (1, 2):
            if result.verdict is not Verdict.UNPARSED or result.session_id is None:
                break
            finalize_call = FinalizeCall(
                call=step, session_id=result.session_id, reasons=result.reasons, attempt=attempt, result=result
            )
            result = await self._carry_out(finalize_call, finalize)
        return result

    async def _have_it_read(
        self,
        call: StepCall,
        unread: StepResult,
        last: StepCall | FinalizeCall,
        activity_id: str,
        priority: Priority,
    ) -> StepResult:
        """Run the reader on the outgoing content, then continue the step, and return the step's result."""
        reading = unread
        for _ in range(_TRIES):
            reading = await self._ask(reader_of(call, unread), priority)
            if reading.verdict is not Verdict.UNPARSED:
                break
        if reading.verdict is Verdict.CANCELLED:
            return reading
        if reading.verdict is Verdict.UNPROVEN:  # the host is another one now, and it does not have the answer
            return await self._ask(call, priority)
        used = {"usage": reading.usage, "duration_seconds": reading.duration_seconds}
        so_far = unread.model_copy(update=used)
        if reading.verdict is not Verdict.DONE:
            self._answered = None  # no reader follows: the step fails
            reasons = tuple(f"nothing was pushed, for its reader did not answer: {why}" for why in reading.reasons)
            return so_far.model_copy(update={"reasons": reasons})
        read = ReaderReport(digest=unread.unread, findings=reading.findings)
        again = going_on(last, activity_id, so_far, read)
        result = await self._ask(again, priority)
        if result.findings and all(finding.kind == "outgoing" for finding in result.findings):
            self._held = again, frozenset(finding.id for finding in result.findings)
        return result

    async def end(self, call: StepCall) -> StepResult:
        """End a cancelled step's agent and save its work, if the step could not do so itself.

        On the host's control queue, this activity waits for no agent's slot.

        Raises:
            AgentLeft: The host is silent.
        """
        running = END_WORK.start(
            EndCall.of(call, self._known, self._activity_id),
            task_queue=call.workspace.end_queue,
            summary=f"{_role_of(call)}: the agent's end and a rescue",
            **end_options(call.limits, call.workspace.orphan_limit_seconds),
        )
        return await self._hosts.end_of(running)

    async def _carry_out(self, call: AnyStepCall, start: Callable[[AnyStepCall], Running]) -> StepResult:
        """Run a call's activity on the workspace's host; if a budget is spent, wait for room and continue.

        The use and the time of the step's earlier activities are added; a finalizer's result has them already.
        """
        while True:
            self._gate.close()
            result = await self._hosts.carry_out(call, start)
            if self._known is not None and isinstance(call, StepCall):
                result = result.model_copy(
                    update={
                        "usage": result.usage.plus(self._known.usage),
                        "duration_seconds": round(result.duration_seconds + self._known.duration_seconds, 3),
                        "session_id": result.session_id or self._known.session_id,
                        "run": result.run or self._known.run,
                        "timestamp": result.timestamp or self._known.timestamp,
                        "checkpoint": result.checkpoint or self._known.checkpoint,
                    }
                )
            self._known, self._activity_id = result, ""
            wait = result.budget_wait if result.verdict is Verdict.OVER_BUDGET else None
            if wait is None:
                return result
            if is_to_end():
                raise asyncio.CancelledError
            await self._gate.wait(wait)
            call = _after_wait(call, result)

    def _start(self, priority: Priority, call: StepCall) -> Running:
        again = f" (try {call.attempt})" if call.attempt > 1 else ""
        stub = REWORK if call.rework is not None else STEPS[call.step]
        self._activity_id = self._ids.of(call.name)
        if call.reads:
            stub = READ_OUTGOING
        else:
            self._answered = call, call.settles or self._activity_id
        return stub.start(
            call,
            task_queue=call.workspace.task_queue,
            activity_id=self._activity_id,
            summary=f"{_role_of(call)}{again} · {call.workspace.agent}",
            priority=priority,
            **step_options(call.limits),
        )

    def _start_finalizer(self, priority: Priority, call: FinalizeCall) -> Running:
        self._activity_id = self._ids.of("finalize_json")
        if not call.call.reads:
            self._answered = call, call.call.settles or self._activity_id
        return FINALIZE_JSON.start(
            call,
            task_queue=call.call.workspace.task_queue,
            activity_id=self._activity_id,
            summary=f"{call.call.name}: only the answer, as JSON (attempt {call.attempt})",
            priority=priority,
            **step_options(call.call.limits),
        )


def _role_of(call: StepCall) -> str:
    if call.reads:
        return "reader of what is about to be pushed"
    round_ = f", round {call.rework.round} on the pull request" if call.rework is not None else ""
    return f"{AGENT_NAMES[call.step]}{round_}"


def _after_wait(call: AnyStepCall, result: StepResult) -> AnyStepCall:
    """Return the call that continues after a wait for a budget, in the same session and worktree."""
    if isinstance(call, FinalizeCall):
        unread = result.model_copy(update={"verdict": Verdict.UNPARSED, "budget_wait": None})
        return call.model_copy(update={"result": unread})
    if result.session_id is None or not result.run:
        return call
    reasons = (*(reason for reason in call.reasons if reason != _GOES_ON), _GOES_ON)
    update = {
        "session_id": result.session_id,
        "starts_from": result.checkpoint or call.starts_from,
        "reasons": reasons,
    }
    return call.model_copy(update=update)
