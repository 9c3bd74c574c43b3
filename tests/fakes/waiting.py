"""Waits of tests by polling, with a report of the condition that never came true."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

WITHIN_SECONDS = 60.0
_LOOK_EVERY_SECONDS = 0.02
_COMMAND_EVERY_SECONDS = 0.3
Seen = TypeVar("Seen")


def until(
    look: Callable[[], Seen | None],
    seconds: float = WITHIN_SECONDS,
    *,
    holds: Callable[[Seen], object] = bool,
    every_seconds: float = _LOOK_EVERY_SECONDS,
) -> Seen:
    """Poll until `holds` is true of the seen value, or the value itself is true, and return the value."""
    deadline = time.monotonic() + seconds
    while (seen := look()) is None or not holds(seen):
        assert time.monotonic() < deadline, _missed(look if holds is bool else holds, seen, seconds)
        time.sleep(every_seconds)
    return seen


def until_temporal(look: Callable[[], Seen | None]) -> Seen:
    """Poll as `until` does with a Temporal command, whose start takes more than a tenth of a second."""
    return until(look, every_seconds=_COMMAND_EVERY_SECONDS)


@overload
async def wait_until(look: Callable[[], Awaitable[Seen | None]], *, seconds: float = WITHIN_SECONDS) -> Seen: ...


@overload
async def wait_until(look: Callable[[], Seen | None], *, seconds: float = WITHIN_SECONDS) -> Seen: ...


@overload
async def wait_until(
    look: Callable[[], Awaitable[Seen]], holds: Callable[[Seen], object], seconds: float = WITHIN_SECONDS
) -> Seen: ...


@overload
async def wait_until(
    look: Callable[[], Seen], holds: Callable[[Seen], object], seconds: float = WITHIN_SECONDS
) -> Seen: ...


async def wait_until(
    look: Callable[[], Any], holds: Callable[[Any], object] = bool, seconds: float = WITHIN_SECONDS
) -> Any:
    """Poll until `holds` is true of the seen value, and return it; an awaitable of `look` is awaited."""
    seen = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                looked = look()
                seen = await looked if inspect.isawaitable(looked) else looked
                if holds(seen):
                    return seen
                await asyncio.sleep(_LOOK_EVERY_SECONDS)
    except TimeoutError:
        raise AssertionError(_missed(look if holds is bool else holds, seen, seconds)) from None


def _missed(condition: Callable[..., object], seen: object, seconds: float) -> str:
    try:
        words = inspect.getsource(condition).strip()
    except (OSError, TypeError):
        words = repr(condition)
    return f"waited {seconds:.0f} s in vain for: {words}\nseen last: {seen!r}"
