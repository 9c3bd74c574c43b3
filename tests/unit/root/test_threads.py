"""Blocking work in threads."""

import asyncio
import threading

import pytest

from septet.system.threads import LOOKS, shielded_thread


@pytest.mark.law
async def test_no_number_of_cancels_tears_what_a_thread_does() -> None:
    """A task that is cancelled several times waits for the end of its thread, and is then cancelled."""
    begun, goes_on, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        goes_on.wait(30)
        done.set()

    task = asyncio.create_task(shielded_thread(LOOKS, work))
    await asyncio.to_thread(begun.wait, 30)
    for _ in range(3):
        task.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
    assert not task.done()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()
