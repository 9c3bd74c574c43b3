"""One try of one step: run it; where its answer cannot be read, ask the same session for the answer alone."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

from temporalio.common import Priority

from septet.contracts.names import AGENT_NAMES, Verdict
from septet.contracts.steps import FinalizeCall, StepCall, StepResult
from workflows.activity_stubs import END_WORK, FINALIZE_JSON, REWORK, STEPS
from workflows.hosts._host_wait import Running
from workflows.hosts.activity_ids import ActivityIds
from workflows.hosts.host_watch import AnyStepCall, HostWatch
from workflows.policies import end_options, step_options


class Gate(Protocol):
    """What an activity that has to wait goes through: it is carried out again when that is over."""

    async def carry_out(
        self, call: AnyStepCall, take: Callable[[AnyStepCall], Awaitable[StepResult]]
    ) -> StepResult:
        """Carry an activity out, as often as it takes."""


class _OpenGate:
    """Nothing waits here."""

    async def carry_out(
        self, call: AnyStepCall, take: Callable[[AnyStepCall], Awaitable[StepResult]]
    ) -> StepResult:
        return await take(call)


_OPEN: Final = _OpenGate()


async def take_step(
    call: StepCall, hosts: HostWatch, ids: ActivityIds, priority: Priority, gate: Gate = _OPEN
) -> StepResult:
    """Run one step on the host of its workspace, and the finalizer where it is needed: once, and once more."""
    again = f" (try {call.attempt})" if call.attempt > 1 else ""

    def start(call: StepCall) -> Running:
        stub = REWORK if call.rework is not None else STEPS[call.step]
        return stub.start(
            call,
            task_queue=call.workspace.task_queue,
            activity_id=ids.of(call.name),
            summary=f"{_role_of(call)}{again} · {call.workspace.agent}",
            priority=priority,
            **step_options(call.limits),
        )

    finalize = partial(_start_finalizer, ids, priority)
    result = await gate.carry_out(call, lambda each: hosts.carry_out(each, start))
    for attempt in (1, 2):
        if result.verdict is not Verdict.UNPARSED or result.session_id is None:
            break
        finalize_call = FinalizeCall(
            call=call, session_id=result.session_id, reasons=result.reasons, attempt=attempt, result=result
        )
        result = await gate.carry_out(finalize_call, lambda each: hosts.carry_out(each, finalize))
    return result


def _start_finalizer(ids: ActivityIds, priority: Priority, call: FinalizeCall) -> Running:
    """Start the finalizer."""
    return FINALIZE_JSON.start(
        call,
        task_queue=call.call.workspace.task_queue,
        activity_id=ids.of("finalize_json"),
        summary=f"{call.call.name}: only the answer, as JSON (attempt {call.attempt})",
        priority=priority,
        **step_options(call.call.limits),
    )


async def end_work(call: StepCall, hosts: HostWatch) -> StepResult:
    """End the agent of a cancelled step that could not do so itself, and keep what it did.

    It waits for no slot of an agent where the host serves it on its control queue.

    Raises:
        AgentLeft: The host is silent.
    """
    running = END_WORK.start(
        call,
        task_queue=call.workspace.end_queue,
        summary=f"{_role_of(call)}: the agent's end and a rescue",
        **end_options(call.limits),
    )
    return await hosts.end_of(running)


def _role_of(call: StepCall) -> str:
    round_ = f", round {call.rework.round} on the pull request" if call.rework is not None else ""
    return f"{AGENT_NAMES[call.step]}{round_}"
