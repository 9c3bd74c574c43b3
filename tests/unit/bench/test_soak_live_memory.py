"""The live memory of a server, by its metrics."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fakes.listening import QuietHandler, listening

from bench.soak.live_memory import LiveMemory


@contextmanager
def metrics_of(*lines: str) -> Iterator[str]:
    """Serve metrics that answer each request with the next of these lines, among other lines."""
    left = list(lines)

    class Handler(QuietHandler):
        def handle_any(self) -> None:
            content = f"memory_heapidle 7\n{left.pop(0)}\nmemory_heap_objects 9\n".encode()
            self.answer(200, {}, content)

    with listening(Handler) as address:
        yield f"{address}/metrics"


async def test_the_least_since_the_last_question_counts() -> None:
    """The smallest heap since the last question counts, with the stacks added."""
    stack = 'memory_stack{service_name="history"} 2e+07'
    heaps = ('memory_heap{service_name="history"} 9.1e+07', "memory_heap 6.4e+07", "memory_heap 8e+07")
    with metrics_of(*(f"{heap}\n{stack}" for heap in (*heaps, "memory_heap 7e+07"))) as address:
        live = LiveMemory(address)
        for _ in heaps:
            await live.look()
        assert live.take() == 84e6
        await live.look()
        assert live.take() == 90e6


@pytest.mark.parametrize("told", ["memory_heapinuse 5\nmemory_stack 1", "memory_heap 5"])
async def test_a_server_that_does_not_tell_all_is_a_mistake(told: str) -> None:
    """Missing metrics raise an error and do not count as little memory."""
    with metrics_of(told) as address, pytest.raises(ValueError, match="does not tell of both"):
        await LiveMemory(address).look()
