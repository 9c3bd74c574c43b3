"""A step that a person has paused or reset: its agent is ended, and the next attempt resumes it or begins anew."""

import asyncio
import os
import time
from contextlib import suppress
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError

from activities.host.cancellation import activity_handle, was_reset
from septet.agents.outcomes.endings import PAUSED, RESET
from septet.agents.sandbox.attachment import end_agent
from septet.agents.turns.request import TurnRequest
from septet.errors import AgentError

_END_WITHIN_SECONDS: Final = 15.0
_LOOK_SECONDS: Final = 0.02


async def leave_paused_or_reset(request: TurnRequest) -> None:
    """End the agent of an attempt that was paused or reset, and do nothing where it was cancelled otherwise.

    Paused: its session and its worktree stay as they are. Reset: its runs count no more, so that the next attempt
    takes a rescue, returns to the step's checkpoint and begins anew.

    Raises:
        ApplicationError: It was paused or reset; the failure costs no agent's try.
        AgentError: The agent could not be ended.
    """
    details = activity.cancellation_details()
    if details is None:
        return
    info, unknown = activity.info(), details.not_found
    reset = details.reset or (
        unknown and await was_reset(activity.client(), request.key, info.attempt, info.started_time.timestamp())
    )
    if not (details.paused or reset):
        return
    if reset:
        await asyncio.to_thread(request.runtime.runs.set_aside, request.order_id, request.key)
    await _end_own_agent(request, RESET if reset else PAUSED)
    if reset:
        message = "Reset: the agent was stopped; the step starts again from its checkpoint."
    else:
        message = "Paused: the agent was stopped, and its session and worktree are kept; unpause to continue."
    pause = ApplicationError(
        message, type="Reset" if reset else "Paused", category=ApplicationErrorCategory.BENIGN
    )
    if unknown:  # its token counts no more, and the server would wait for the time-out of its heartbeats
        with suppress(RPCError):
            await activity_handle(activity.client(), request.key).fail(pause)
    raise pause


async def _end_own_agent(request: TurnRequest, why: str) -> None:
    """End the agent that runs for this request, also one that is being started while it is called off."""
    runs = request.runtime.runs
    bound = time.monotonic() + _END_WITHIN_SECONDS
    while not await asyncio.to_thread(_nobody_writes, request):
        living = await asyncio.to_thread(runs.living, request.order_id)
        if living is not None and living.record is not None:
            if living.record.key != request.key:
                return
            await end_agent(living, why)
        if time.monotonic() > bound:
            raise AgentError(
                f"The writer's lock of {request.order_id} is held, but no agent that could hold it answers."
            )
        await asyncio.sleep(_LOOK_SECONDS)


def _nobody_writes(request: TurnRequest) -> bool:
    """Say whether the writer's lock is free."""
    lock = request.runtime.runs.lock_writer(request.order_id)
    if lock is None:
        return False
    os.close(lock)
    return True
