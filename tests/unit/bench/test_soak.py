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


@pytest.mark.parametrize("seed", range(5))
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


@pytest.mark.parametrize("name", ["worker_memory", "server_live", "disk"])
@pytest.mark.parametrize(("rise", "verdict"), [(0.4, "flat"), (0.6, "grows")])
def test_memory_and_disk_must_stay_within_their_noise(name: str, rise: float, verdict: str) -> None:
    """Memory and disk must be flat, whatever queues, timers or branches do; a rise within the noise is flat."""
    rises = {"rows": 0.0, "branches": 400.0, "queues": 810.0, "timers": 400.0, name: rise}
    found = {each: Slope(middle=100.0, per_hour=most, rise=most, noise=0.5) for each, most in rises.items()}
    assert (is_flat(name, found), verdict_of(name, found)) == (verdict == "flat", verdict)
