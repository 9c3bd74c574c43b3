"""What several work orders cost together: the interval of their sum holds what it says."""

import math
from collections.abc import Callable
from random import Random
from statistics import fmean

import pytest

from septet.costs.estimate import FEWEST, interval_of
from septet.costs.sums import Draws

TRIALS = 300
DRAWS = 120
AHEAD = 8


def lognormal(rng: Random) -> float:
    return rng.lognormvariate(0.0, 0.7)


def two_kinds(rng: Random) -> float:
    """Most are small, one in five is five times as dear."""
    return rng.uniform(0.5, 1.5) * (5 if rng.random() < 0.2 else 1)


def drawn(rng: Random, cost: Callable[[Random], float], count: int, ahead: int) -> tuple[float, float]:
    """Return how often the sum of work orders that were held out lies in the interval, and how wide that is."""
    hits, widths = 0, []
    for _ in range(TRIALS):
        seen = [cost(rng) for _ in range(count)]
        interval = interval_of(Draws(count, (ahead,), DRAWS).sums([seen]))
        hits += interval.low <= sum(cost(rng) for _ in range(ahead)) <= interval.high
        widths.append(math.log(interval.high / interval.low))
    return hits / TRIALS, fmean(widths)


@pytest.mark.parametrize("cost", [lognormal, two_kinds])
@pytest.mark.parametrize("count", [FEWEST, 30])
def test_a_sum_lies_in_its_interval_in_eight_of_ten(cost: Callable[[Random], float], count: int) -> None:
    """70 to 90 % of sums that were held out, whatever the costs look like, from few that were seen as from many."""
    rng = Random(f"{cost.__name__}-{count}")  # noqa: S311 -- repeated by its seed
    hits, _ = drawn(rng, cost, count, AHEAD)
    assert 0.7 <= hits <= 0.9


def test_few_that_were_seen_leave_the_sum_of_many_uncertain() -> None:
    """From nine, the sum of a hundred is hardly narrower than that of ten: nine do not tell the mean any better."""
    rng = Random(5)  # noqa: S311 -- repeated by its seed
    seen = [lognormal(rng) for _ in range(FEWEST)]
    ten, hundred = (interval_of(Draws(FEWEST, (ahead,)).sums([seen])) for ahead in (10, 100))
    assert math.log(hundred.high / hundred.low) > 0.6 * math.log(ten.high / ten.low)


def test_mere_resampling_would_be_too_narrow() -> None:
    """Beside it: with equal weights in all draws the same sums lie in the interval far less often than it says."""
    rng, hits = Random(7), 0  # noqa: S311 -- repeated by its seed
    for _ in range(TRIALS):
        seen = [lognormal(rng) for _ in range(FEWEST)]
        interval = interval_of([sum(rng.choices(seen, k=5 * AHEAD)) for _ in range(DRAWS)])
        hits += interval.low <= sum(lognormal(rng) for _ in range(5 * AHEAD)) <= interval.high
    assert hits / TRIALS < 0.6


def test_each_kind_of_work_is_there_as_often_as_it_is() -> None:
    """Of costs that never vary the sum is what they come to; one work order alone is what was seen of it."""
    assert set(Draws(3, (2, 5), 10).sums([[1.0] * 3, [10.0] * 3])) == {52.0}
    assert Draws(3, (1,)).sums([[3.0, 1.0, 2.0]]) == [3.0, 1.0, 2.0]
