"""The board's seats: who may begin, in which order, under which limits."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.board.seats import MOST_WAITING, Seats
from septet.contracts.board import BoardState, HostCapacity, SeatRequest

PAYLOAD_LIMIT_BYTES = 2 * 1024 * 1024


def waits(name: str, project: str = "app", score: int = 3, since: float = 0.0) -> SeatRequest:
    return SeatRequest(id=name, project=project, score=score, since=since)


def serves(host: str = "one", host_limit: int = 20, project_limit: int = 4, seconds: float = 60.0) -> HostCapacity:
    return HostCapacity(host=host, host_limit=host_limit, project_limit=project_limit, seconds=seconds)


def seats_with(*waiting: SeatRequest, **limits: int) -> Seats:
    seats = Seats()
    seats.hear(serves(**limits), 0.0)
    for each in waiting:
        seats.wait(each)
    return seats


def due(seats: Seats, now: float = 1.0) -> list[str]:
    return [each.id for each in seats.due(now)]


def test_the_best_score_is_first_and_among_equals_the_oldest() -> None:
    """Score goes before age, and age before the id."""
    seats = seats_with(waits("b", since=2.0), waits("c", since=1.0), waits("a", since=2.0), waits("d", score=9))
    assert due(seats) == ["d", "c", "a", "b"]


def test_a_project_gets_no_more_than_its_limit() -> None:
    """The third of a project waits, and those of others pass it by."""
    seats = seats_with(waits("a"), waits("b"), waits("c"), waits("d", "other"), project_limit=2)
    assert due(seats) == ["a", "b", "d"]
    for each in seats.due(1.0):
        seats.seat(each)
    assert due(seats) == []
    seats.leave("a")
    assert due(seats) == ["c"]


def test_hosts_have_as_many_seats_as_they_say_while_they_are_heard_of() -> None:
    """Seats are those of the hosts together; one that is silent for too long counts no more."""
    seats = seats_with(*(waits(name, name) for name in "abcdef"), host_limit=1)
    seats.hear(serves("two", host_limit=2, seconds=600), 30.0)
    assert due(seats, 31.0) == ["a", "b", "c"]
    assert due(seats, 61.0) == ["a", "b"]
    seats.hear(serves("three", host_limit=1), 70.0)
    assert sorted(seats.hosts) == ["three", "two"]


def test_nobody_begins_where_no_host_serves() -> None:
    """Without a host there is no seat."""
    seats = Seats()
    seats.wait(waits("a"))
    assert due(seats) == []


def test_one_that_asks_again_has_no_seat_any_more() -> None:
    """What waits does not run: its seat is free."""
    seats = seats_with(waits("a"), host_limit=1)
    (first,) = seats.due(1.0)
    seats.seat(first)
    seats.seat(first)
    assert (due(seats), list(seats.holders)) == ([], ["a"])
    seats.wait(waits("a"))
    assert due(seats) == ["a"]


@pytest.mark.parametrize(
    "filler",
    ["0" * 195, "\u4ed5" * 35, "\u4ed5" * 195, '"' * 35, "\\" * 195],
    ids=["long", "han", "long han", "quotes", "strokes"],
)
def test_ten_thousand_with_the_longest_names_fit_into_a_payload(filler: str) -> None:
    """The state of a full board stays well under Temporal's limit; of more than that the last are passed over."""
    seats = seats_with()
    for number in range(MOST_WAITING + 5):
        seats.wait(waits(f"{number:064d}", project=f"{filler}{number:05d}", score=-3, since=1.8e9 + number / 7))
    assert len(seats.waiting) == MOST_WAITING
    assert seats.passed_over
    assert f"{MOST_WAITING:064d}" not in seats.waiting
    assert len(seats.state.model_dump_json().encode()) < 0.8 * PAYLOAD_LIMIT_BYTES


orders = st.builds(
    waits,
    st.text("abcdef", min_size=1, max_size=3),
    st.sampled_from(["one", "two", "a" * 60]),
    st.integers(-3, 9),
    st.floats(0, 1e9),
)


@given(st.lists(orders), st.integers(0, 5), st.integers(1, 3))
def test_limits_hold_whatever_waits(waiting: list[SeatRequest], host_limit: int, project_limit: int) -> None:
    """However many wait, those with a seat are within all limits, and no seat stays free that somebody could take."""
    seats = seats_with(*waiting, host_limit=host_limit, project_limit=project_limit)
    while found := seats.due(1.0):
        seats.seat(found[0])
    projects = list(seats.holders.values())
    assert len(projects) <= host_limit
    assert all(projects.count(project) <= project_limit for project in projects)
    free = len(projects) < host_limit
    assert not free or all(projects.count(each.project) == project_limit for each in seats.waiting.values())


@given(st.lists(orders))
def test_what_is_remembered_is_the_same(waiting: list[SeatRequest]) -> None:
    """A board that goes on from its state, over the wire, is the same board."""
    seats = seats_with(*waiting)
    for each in seats.due(1.0)[:2]:
        seats.seat(each)
    state = BoardState.model_validate_json(json.dumps(seats.state.model_dump(mode="json")))
    assert Seats.of(state) == seats
