"""The arithmetic of the soak: growth and noise."""

import random

import pytest

from bench.soak.slopes import envelope_of, slope_of

MOMENTS = [float(15 * number) for number in range(480)]
"""The times of samples over two hours."""


def noise(seed: int) -> list[float]:
    """Return the noise of a program's memory, one value for each sample."""
    chance = random.Random(seed)  # noqa: S311 -- repeatable by its seed
    return [chance.gauss(0, 2) for _ in MOMENTS]


@pytest.mark.parametrize("seed", range(20))
def test_what_only_moves_up_and_down_is_flat(seed: int) -> None:
    """Noise around a level is no growth, for every seed."""
    values = [150 + each for each in noise(seed)]
    assert slope_of(MOMENTS, values).is_flat


@pytest.mark.parametrize("seed", range(20))
def test_a_slow_leak_is_found(seed: int) -> None:
    """Ten megabytes an hour are found in noise of two megabytes."""
    values = [150 + 10 * moment / 3600 + each for moment, each in zip(MOMENTS, noise(seed), strict=True)]
    slope = slope_of(MOMENTS, values)
    assert not slope.is_flat
    assert slope.per_hour == pytest.approx(10, abs=2)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_live_is_seen_below_what_is_collected(seed: int) -> None:
    """The least of each window shows whether the live part of a collected heap grows."""
    chance = random.Random(seed)  # noqa: S311 -- repeatable by its seed
    for leak, is_flat in ((0.0, True), (12.0, False)):
        live = [60 + leak * moment / 3600 for moment in MOMENTS]
        least = envelope_of([each * chance.uniform(1, 1.3) for each in live], 12)
        assert slope_of(MOMENTS, least).is_flat is is_flat
