"""Circles among work orders that come after each other."""

import pytest

from septet.board import circle_of

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(
    ("after", "others", "circle"),
    [
        (["b"], {}, None),
        (["a"], {}, "a after a"),
        (["b", "c"], {"b": ["d"], "c": ["d"], "d": ["e"]}, None),
        (["b", "c"], {"c": ["d"], "d": ["a"]}, "a after c after d after a"),
        (["b"], {"b": ["c"], "c": ["b"]}, None),
        (["n1"], {f"n{number}": [f"n{number + 1}"] for number in range(1, 200)}, None),
    ],
)
async def test_the_circle_is_told(after: list[str], others: dict[str, list[str]], circle: str | None) -> None:
    """The shortest circle through the work order is named; circles of others and long chains are not followed."""

    async def comes_after(other: str) -> list[str]:
        return others.get(other, [])

    assert await circle_of("a", after, comes_after) == circle
