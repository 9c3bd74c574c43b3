"""The soak's arithmetic of growth and noise, and its verdict."""

import random

import pytest

from bench.soak.slopes import Slope, envelope_of, slope_of
from bench.soak.verdicts import is_flat, verdict_of

MOMENTS = [float(15 * number) for number in range(480)]
"""The times of samples over two hours."""


def noise(seed: int) -> list[float]:
    chance = random.Random(seed)  # noqa: S311 -- repeatable by its seed
    return [chance.gauss(0, 2) for _ in MOMENTS]


@pytest.mark.parametrize("seed", range(20))
def test_a_slow_leak_is_found_and_noise_is_flat(seed: int) -> None:
    """Ten megabytes an hour are found in noise of two megabytes, and the noise alone is no growth."""
    level = [150 + each for each in noise(seed)]
    assert slope_of(MOMENTS, level).is_flat
    slope = slope_of(MOMENTS, [each + 10 * moment / 3600 for each, moment in zip(level, MOMENTS, strict=True)])
    assert not slope.is_flat
    assert slope.per_hour == pytest.approx(10, abs=2)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_live_is_seen_below_what_is_collected(seed: int) -> None:
    """The least of each window shows whether the live part of a collected heap grows."""
    chance = random.Random(seed)  # noqa: S311 -- repeatable by its seed
    for leak, flat in ((0.0, True), (12.0, False)):
        live = [60 + leak * moment / 3600 for moment in MOMENTS]
        least = envelope_of([each * chance.uniform(1, 1.3) for each in live], 12)
        assert slope_of(MOMENTS, least).is_flat is flat


MEASURES = (
    "worker_memory", "server_memory", "server_live", "disk", "mirrors", "branches", "database", "rows", "queues", "timers",
)  # fmt: skip


def slopes(**rises: float) -> dict[str, Slope]:
    """Return measures that are flat within a noise of 0.5, except for these rises."""
    return {
        name: Slope(middle=100.0, per_hour=rise, rise=rise, noise=0.5)
        for name, rise in ((name, rises.get(name, 0.0)) for name in MEASURES)
    }


def test_what_stays_within_its_noise_is_flat() -> None:
    """A rise within the noise is flat."""
    assert {verdict_of(name, slopes(server_memory=0.4)) for name in MEASURES} == {"flat"}


@pytest.mark.parametrize("name", ["worker_memory", "server_live", "disk"])
def test_nothing_else_may_grow(name: str) -> None:
    """Memory and disk must be flat, whatever queues, timers or branches do."""
    found = slopes(**{name: 0.6, "branches": 400.0, "queues": 810.0, "timers": 400.0})
    assert (is_flat(name, found), verdict_of(name, found)) == (False, "grows")
