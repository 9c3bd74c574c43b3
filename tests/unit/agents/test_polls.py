"""Polls of streams: one thread reads them together, and an error of one stream delays no other."""

import asyncio
import threading

import pytest

from septet.agents.turns.follow import Polls

SECONDS = 0.05


class ToldStream:
    def __init__(self, trouble: Exception | None = None) -> None:
        self.trouble = trouble
        self.threads: list[int] = []

    def read_some(self) -> bool:
        self.threads.append(threading.get_ident())
        if self.trouble is not None:
            raise self.trouble
        return True

    def catch_up(self) -> None:
        pass


async def test_looks_of_the_same_moment_take_one_thread() -> None:
    """Polls at the same moment read each stream once, in one thread beside the event loop's."""
    polls, streams = Polls(), [ToldStream() for _ in range(50)]
    await asyncio.gather(*(polls.catch_up(stream, SECONDS) for stream in streams))
    assert [len(stream.threads) for stream in streams] == [1] * 50
    (thread,) = {thread for stream in streams for thread in stream.threads}
    assert thread != threading.get_ident()


async def test_trouble_with_one_stream_is_no_others() -> None:
    """The follower of the broken stream gets the error, and the other streams are read again."""
    polls, good = Polls(), ToldStream()
    bad = polls.catch_up(ToldStream(OSError("gone")), SECONDS)
    results = await asyncio.gather(bad, polls.catch_up(good, SECONDS), return_exceptions=True)
    assert isinstance(results[0], OSError)
    assert results[1] is None
    await polls.catch_up(good, SECONDS)
    assert len(good.threads) == 2


async def test_a_cancelled_poll_delays_no_other() -> None:
    """A cancelled poll ends at once, and the other stream is still read."""
    polls, good = Polls(), ToldStream()
    cancelled = asyncio.create_task(polls.catch_up(ToldStream(), SECONDS))
    other = asyncio.create_task(polls.catch_up(good, SECONDS))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    async with asyncio.timeout(10):
        await other
    assert len(good.threads) == 1
