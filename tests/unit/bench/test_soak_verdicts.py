"""What the soak calls growth."""

import pytest

from bench.soak.slopes import Slope
from bench.soak.verdicts import is_flat, verdict_of

MEASURES = (
    "worker_memory", "server_memory", "server_live", "disk", "mirrors", "branches", "database", "rows", "queues", "timers",
)  # fmt: skip


def slopes(**rises: float) -> dict[str, Slope]:
    """Return measures that stay as they are within a noise of a half, but for those that rise."""
    return {
        name: Slope(middle=100.0, per_hour=rise, rise=rise, noise=0.5)
        for name, rise in ((name, rises.get(name, 0.0)) for name in MEASURES)
    }


def test_what_stays_within_its_noise_is_flat() -> None:
    """Nothing has to be explained."""
    assert {verdict_of(name, slopes(server_memory=0.4)) for name in MEASURES} == {"flat"}


def test_a_database_may_hold_the_queues_of_workers_that_ended() -> None:
    """A server keeps them for days: 810 of four tenths of a kilobyte, and not a megabyte."""
    few, many = slopes(queues=810.0, rows=0.7), slopes(queues=810.0, rows=1.3)
    assert (is_flat("rows", few), verdict_of("rows", few)) == (True, "grows with queues and timers")
    assert (is_flat("rows", many), verdict_of("rows", many)) == (False, "grows")
    assert not is_flat("rows", slopes(queues=-810.0, rows=0.7)), "what falls makes no room"


def test_mirrors_hold_the_branches_of_their_origins() -> None:
    """Each work order pushes one, and a mirror keeps it in four blocks; what is more is growth."""
    assert is_flat("mirrors", slopes(branches=400.0, mirrors=6.5))
    assert not is_flat("mirrors", slopes(branches=400.0, mirrors=8.0))


def test_pages_that_a_runtime_keeps_are_no_growth() -> None:
    """The server gives memory back late: it grows where what is live does."""
    kept, held = slopes(server_memory=4.0), slopes(server_memory=4.0, server_live=2.0)
    assert (is_flat("server_memory", kept), verdict_of("server_memory", kept)) == (True, "what is live is flat")
    assert (is_flat("server_memory", held), verdict_of("server_memory", held)) == (False, "grows")


@pytest.mark.parametrize("name", ["worker_memory", "server_live", "disk"])
def test_nothing_else_may_grow(name: str) -> None:
    """Memory and disk are to be flat, whatever is counted beside them."""
    found = slopes(**{name: 0.6, "branches": 400.0, "queues": 810.0, "timers": 400.0})
    assert (is_flat(name, found), verdict_of(name, found)) == (False, "grows")
