"""The decisions of people on a work order, also those that restart it with a reset."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import workflow

from septet.contracts.decisions import MoveCall, PreviousRun, RetryCall, Target, check_move
from septet.contracts.names import Stage, Status
from septet.contracts.task import Task, TaskError
from septet.errors import RefusedTransitionError
from workflows.hosts.host_watch import HostWatch
from workflows.wire.activity_stubs import CANCEL_WORK_ORDER
from workflows.wire.failures import GO_ON, refusal
from workflows.wire.search_attributes import TAKEN_UP_AGAIN
from workflows.work_order.state import WorkOrderState


class Decisions:
    """Carries out people's decisions on one work order: moves, retries and resets."""

    def __init__(self, state: WorkOrderState, hosts: HostWatch, show: Callable[[], None]) -> None:
        """Begin without a decision; `show` publishes the work order's state for people."""
        self._state = state
        self._hosts = hosts
        self._show = show
        self._work: asyncio.Task[Any] | None = None
        self._end_call: MoveCall | None = None
        """The move that ends the work; it takes effect once the agent's work is saved."""
        self._previous_run: PreviousRun | None = None
        self._seed = workflow.random_seed()
        """The random seed of this run; a change of the seed shows a reset."""
        self._feedback = ""
        self.is_in_pipeline = False
        self.was_reset = False
        """Whether this run was begun by a reset."""

    def watch(self) -> None:
        """Remember the current asyncio task as the work that a move can end."""
        self._work = asyncio.current_task()

    def check(self, call: MoveCall) -> None:
        """Refuse a move that the present stage does not allow; the refusal lists the allowed moves."""
        self._check_begun()
        if self._state.task.is_closed or self._end_call is not None:
            raise refusal(f"{self._state.task.id} is about to close.", "Try again when it is closed.")
        if self.is_in_pipeline and call.to is Target.EXECUTING and self._state.task.status is Status.PENDING:
            raise refusal(
                f"{self._state.task.id} starts when its pipeline starts it.",
                "It is triaged and waits for its turn.",
            )
        try:
            check_move(self._state.task, call.to)
        except RefusedTransitionError as error:
            raise refusal(error.message, error.remedy) from None

    async def make(self, call: MoveCall) -> Task:
        """Make a move that `check` allowed. If the move ends the work, wait for the end. Return the work order."""
        match call.to:
            case Target.CANCELLED:
                self._end_call = call
                await _cancel(call)
            case Target.EXECUTING if self._state.waits_for_host:
                self._hosts.is_nudged = True
            case Target.BLOCKED if self._state.task.status is not Status.PENDING:
                self._end_call = call
                if self._work is not None:
                    self._work.cancel()
            case _:
                self._feedback = call.feedback
                self._state.place(Stage(call.to.value), call.who, call.why, workflow.now())
                self._show()
        if self._end_call is not None:
            await workflow.wait_condition(lambda: self._state.task.is_closed)
        return self._state.task

    def check_retry(self, call: RetryCall) -> None:
        """Refuse a retry if the work order continues by itself."""
        self._check_begun()
        task = self._state.task
        if self._state.task.is_closed or not (self._is_held_up or self._state.waits_for_host):
            why = f"{task.id} is {task.stage.value} ({task.status.value})."
            raise refusal(
                why, "Only a blocked or closed work order can be retried: cancel it first, or wait until it ends."
            )
        if call.from_step is not None:
            raise refusal(f"{task.id} is not closed and cannot go back to a step.", "Cancel it first.")

    def retry(self, call: RetryCall) -> Task:
        """Move a blocked work order to `triaged`, or probe a gone host again; return the work order."""
        self._feedback = call.feedback
        if self._is_held_up:
            self._state.place(Stage.TRIAGED, call.who, call.why or "retried", workflow.now())
            self._show()
        else:
            self._hosts.is_nudged = True
        return self._state.task

    def resume(self, previous: PreviousRun) -> None:
        """Record the reason and the feedback with which a person reset the work order."""
        self._previous_run = previous

    async def give_up(self, previous: PreviousRun) -> None:
        """Record that a person reset the work order only to cancel it."""
        self._previous_run = previous
        self._end_call = MoveCall(to=Target.CANCELLED, who=previous.who, why=previous.why)
        await _cancel(self._end_call)

    async def apply_reset(self) -> bool:
        """Record the reason of a reset; after a reset that serves to cancel, wait for the cancel.

        Returns: Whether a reset restarted the work order at this point of its workflow.
        """
        is_taken_up = await self._wait_for_reset_reason()
        previous, self._previous_run = self._previous_run, None
        if previous is None:
            return is_taken_up
        self._feedback = previous.feedback
        self._state.resume(previous, workflow.now())
        self._hosts.leave_lost_host(previous.host)
        self._show()
        if self._end_call is not None:
            await workflow.wait_condition(lambda: False)
        return is_taken_up

    async def _wait_for_reset_reason(self) -> bool:
        """After a reset, wait some time for the signal with its reason; Temporal's own tools send no such signal.

        A reset changes the run's random seed, unless the reset goes back to before the first workflow task. Only
        the signal then shows the reset.

        Returns: Whether a reset happened.
        """
        seed, self._seed = self._seed, workflow.random_seed()
        if seed == self._seed and not self.knows_of_reset:
            return False
        self.was_reset = True
        workflow.upsert_search_attributes([TAKEN_UP_AGAIN.value_set(value=True)])
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self.knows_of_reset, timeout=timedelta(seconds=5), timeout_summary="a reset: what for?"
            )
        return True

    @property
    def knows_of_reset(self) -> bool:
        """Whether the reason of a reset has arrived and was not applied yet."""
        return self._previous_run is not None

    def take_feedback(self) -> tuple[str, ...]:
        """Return people's feedback for the next step, and forget it."""
        feedback, self._feedback = self._feedback, ""
        return (f"A person says: {feedback}",) if feedback else ()

    def end_reason(self) -> tuple[str, str]:
        """Return the person who cancelled the work order, empty if unknown, and the reason."""
        if self._end_call is not None:
            return self._end_call.who, self._end_call.why or Status.CANCELLED.value
        return "", workflow.cancellation_reason() or Status.CANCELLED.value

    def block_error(self) -> TaskError | None:
        """Return the reason of a person's move to the stage `blocked` as an error; `None` after a cancel."""
        if self._end_call is None or self._end_call.to is not Target.BLOCKED:
            return None
        who = self._end_call.who or "a person"
        message = (
            f"{who} moved it to blocked: {self._end_call.why}"
            if self._end_call.why
            else f"{who} moved it to blocked."
        )
        return TaskError(type="Blocked", message=message, remedy=GO_ON)

    def _check_begun(self) -> None:
        """Refuse an update that comes before the work order has read its own input."""
        if not self._state.task.id:
            raise refusal("The work order has not started yet.", "Try again in a moment.")

    @property
    def _is_held_up(self) -> bool:
        return self._state.task.status is Status.PENDING and self._state.task.stage is Stage.BLOCKED


async def _cancel(call: MoveCall) -> None:
    await CANCEL_WORK_ORDER.start(call, summary="a person ends it", start_to_close_timeout=timedelta(minutes=1))
