"""The soak's verdict about growth."""

import pytest

from bench.soak.slopes import Slope
from bench.soak.verdicts import is_flat, verdict_of

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
