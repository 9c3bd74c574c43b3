"""Circles among those that come after others: nobody in one would ever begin."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

_MOST_FOLLOWED: Final = 100


async def circle_of(
    order_id: str, after: Sequence[str], comes_after: Callable[[str], Awaitable[Sequence[str]]]
) -> str | None:
    """Return the circle in which a work order is, as people read it; `None` where there is none.

    Args:
        order_id: The work order.
        after: What it comes after.
        comes_after: Tells what another one comes after; at most a hundred are asked for.
    """
    ways: deque[tuple[str, ...]] = deque((other,) for other in after)
    visited = set(after)
    while ways:
        way = ways.popleft()
        if way[-1] == order_id:
            return " after ".join((order_id, *way))
        for following in await comes_after(way[-1]):
            if following not in visited and len(visited) < _MOST_FOLLOWED:
                visited.add(following)
                ways.append((*way, following))
    return None
