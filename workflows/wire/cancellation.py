"""Waits that lose no cancel, and waits that continue after a cancel."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError


def is_to_end() -> bool:
    """Return whether the current asyncio task was cancelled; a workflow's cancel cancels its main task."""
    work = asyncio.current_task()
    return work is not None and work.cancelling() > 0


async def cancel_and_wait(running: workflow.ActivityHandle[Any]) -> None:
    """Cancel an activity whose result no longer matters, and wait until it has ended.

    Raises:
        asyncio.CancelledError: The caller was cancelled too, which the wait alone would hide.
    """
    running.cancel()
    with suppress(ActivityError):
        await running
    if is_to_end() or workflow.cancellation_reason() is not None:
        raise asyncio.CancelledError


def forget(running: workflow.ActivityHandle[Any]) -> None:
    """Let an activity end by itself; its result and its failure are ignored."""
    running.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


async def send_signal(workflow_id: str, signal: str, content: object) -> bool:
    """Signal another workflow, and return whether that workflow exists.

    The signal is sent in a separate task: otherwise a cancel while it is sent would be lost.
    """
    sending = asyncio.create_task(workflow.get_external_workflow_handle(workflow_id).signal(signal, content))
    await workflow.wait_condition(sending.done)
    try:
        await sending
    except FailureError:
        return False
    return True


async def wait_despite_cancel(is_over: Callable[[], bool]) -> None:
    """Wait until `is_over` returns true; a cancel does not end the wait."""
    while not is_over():
        with suppress(asyncio.CancelledError):
            await workflow.wait_condition(is_over)
