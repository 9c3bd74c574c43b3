import asyncio
from collections.abc import Callable
from itertools import count

import pytest
from fakes.waiting import until, wait_until


def test_what_was_waited_for_is_returned() -> None:
    """The wait repeats the condition until it is true, and returns its value."""
    looks = count()
    assert until(lambda: next(looks) == 3 and "seen") == "seen"


def test_what_never_came_is_named() -> None:
    """The error names the condition's source and its last value."""
    with pytest.raises(AssertionError, match=r"in vain for: until\(lambda: 0, 0.0\)\nseen last: 0"):
        until(lambda: 0, 0.0)


async def test_an_answer_is_waited_for_until_it_is_the_right_one() -> None:
    """The condition may be a coroutine, with a check of its answer."""
    looks = count()

    async def ask() -> int:
        return next(looks)

    assert await wait_until(ask, lambda number: number > 2) == 3


@pytest.mark.parametrize("look", [lambda: False, lambda: asyncio.sleep(100)], ids=["no", "no answer"])
async def test_what_does_not_come_ends_the_wait(look: Callable[[], object]) -> None:
    """The wait ends with an error if the condition is false, or if its coroutine does not return."""
    with pytest.raises(AssertionError, match="in vain"):
        await wait_until(look, seconds=0.1)
