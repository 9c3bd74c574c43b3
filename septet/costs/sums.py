"""What several work orders cost together, drawn from those before them.

A sum varies less, for its size, than each of its parts: what is dear in one is cheap in another. How much less is
drawn, and not calculated, for costs are skewed. Each draw first weighs the work orders that were seen, each by a
chi-squared number of one degree (a Dirichlet distribution with Jeffreys' prior), and then takes that many of them
by these weights. The weights hold for the whole draw: how little a few work orders tell of the mean does not
average out, so that no interval becomes narrower than what was seen allows.

The work orders ahead count as independent of each other. What is common to them, such as a change of prices or an
unusual set of issues, is not in the interval.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

_TIMES: Final = 400
"""Draws: both ends of eight of ten are then known within two in a hundred cases."""
_SEED: Final = 0
"""The same history gives the same estimate, on each face and again."""


class Draws:
    """Which of the work orders that were seen stand for those ahead, again and again."""

    def __init__(self, orders: int, counts: Sequence[int], times: int = _TIMES) -> None:
        """Draw.

        Args:
            orders: How many work orders were seen.
            counts: Of each kind of work ahead, how often it is there.
            times: How many sums are drawn.
        """
        self._is_single = sum(counts) == 1
        self._draws = () if self._is_single else tuple(_draws(orders, counts, times))

    def sums(self, costs: Sequence[Sequence[float]]) -> Sequence[float]:
        """Return as many sums as were drawn; for one work order alone, its costs as they are.

        Args:
            costs: Of each kind, what it would cost by each work order that was seen.
        """
        if self._is_single:
            return costs[0]
        return [
            sum(
                kind[place] * often
                for kind, places in zip(costs, draw, strict=True)
                for place, often in places.items()
            )
            for draw in self._draws
        ]


def _draws(orders: int, counts: Sequence[int], times: int) -> "list[list[Mapping[int, int]]]":
    """Return for each draw, and each kind of work in it, which work orders were taken, and how often."""
    rng = Random(_SEED)  # noqa: S311 -- nothing secret, and repeatable
    draws: list[list[Mapping[int, int]]] = []
    for _ in range(times):
        weights = [rng.gauss() ** 2 for _ in range(orders)]
        draws.append([Counter(rng.choices(range(orders), weights, k=count)) for count in counts])
    return draws
