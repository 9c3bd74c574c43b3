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


def test_a_database_may_hold_the_queues_of_workers_that_ended() -> None:
    """The rows of new queues and timers are no growth; 0.7 MB for 810 queues are allowed, 1.3 MB are not."""
    few, many = slopes(queues=810.0, rows=0.7), slopes(queues=810.0, rows=1.3)
    assert (is_flat("rows", few), verdict_of("rows", few)) == (True, "grows with queues and timers")
    assert (is_flat("rows", many), verdict_of("rows", many)) == (False, "grows")
    assert not is_flat("rows", slopes(queues=-810.0, rows=0.7)), "what falls makes no room"


def test_mirrors_hold_the_branches_of_their_origins() -> None:
    """A mirror may grow with the branches of its origin, by four blocks for each branch."""
    assert is_flat("mirrors", slopes(branches=400.0, mirrors=6.5))
    assert not is_flat("mirrors", slopes(branches=400.0, mirrors=8.0))


def test_pages_that_a_runtime_keeps_are_no_growth() -> None:
    """The server's memory may grow while its live memory is flat."""
    kept, held = slopes(server_memory=4.0), slopes(server_memory=4.0, server_live=2.0)
    assert (is_flat("server_memory", kept), verdict_of("server_memory", kept)) == (True, "what is live is flat")
    assert (is_flat("server_memory", held), verdict_of("server_memory", held)) == (False, "grows")


@pytest.mark.parametrize("name", ["worker_memory", "server_live", "disk"])
def test_nothing_else_may_grow(name: str) -> None:
    """Memory and disk must be flat, whatever queues, timers or branches do."""
    found = slopes(**{name: 0.6, "branches": 400.0, "queues": 810.0, "timers": 400.0})
    assert (is_flat(name, found), verdict_of(name, found)) == (False, "grows")
