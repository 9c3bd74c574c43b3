"""The board's seats: who may start, in which order, and under which limits."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.board import MOST_WAITING, BoardState, HostCapacity, SeatRequest, Seats, WaitingOrders, first_in_turn

HANDED_ON_BYTES = 250_000


def waits(name: str, project: str = "app", score: int = 3, since: float = 0.0) -> SeatRequest:
    return SeatRequest(id=name, project=project, score=score, since=since)


def serves(
    host: str = "one", *, host_limit: int = 20, project_limit: int = 4, seconds: float = 60.0
) -> HostCapacity:
    return HostCapacity(host=host, host_limit=host_limit, project_limit=project_limit, seconds=seconds)


def seats_with(*waiting: SeatRequest, host_limit: int = 20, project_limit: int = 4) -> Seats:
    seats = Seats()
    seats.hear(serves(host_limit=host_limit, project_limit=project_limit), 0.0)
    for each in waiting:
        seats.wait(each)
    return seats


def due(seats: Seats, now: float = 1.0) -> list[str]:
    return [each.id for each in seats.due(now)]


def test_the_best_score_is_first_and_among_equals_the_oldest() -> None:
    """A better score comes first, then an older request, then the id."""
    seats = seats_with(waits("b", since=2.0), waits("c", since=1.0), waits("a", since=2.0), waits("d", score=9))
    assert due(seats) == ["d", "c", "a", "b"]


def test_hosts_have_as_many_seats_as_they_say_while_they_are_heard_of() -> None:
    """The hosts' seats add up, and a host that is silent for too long counts no more."""
    seats = seats_with(*(waits(name, name) for name in "abcdef"), host_limit=1)
    seats.hear(serves("two", host_limit=2, seconds=600), 30.0)
    assert due(seats, 31.0) == ["a", "b", "c"]
    assert due(seats, 61.0) == ["a", "b"]
    seats.hear(serves("three", host_limit=1), 70.0)
    assert sorted(seats.hosts) == ["three", "two"]


@pytest.mark.parametrize(
    "filler",
    ["\u4ed5" * 195, "\\" * 195],
    ids=["han", "strokes"],
)
def test_a_full_board_with_the_longest_names_is_handed_on_in_little(filler: str) -> None:
    """A full board with the longest names has a state of less than 250 KB, and passes over the last requests."""
    seats = seats_with(host_limit=200)
    for number in range(10_200):
        seats.wait(waits(f"{number:064d}", project=f"{filler}{number:05d}", score=-3, since=1.8e9 + number / 7))
    for each in seats.due(1.0):
        seats.seat(each)
    seats.keep_best(1.0)
    assert len(seats.waiting) == MOST_WAITING
    assert seats.passed_over
    assert f"{10_199:064d}" not in seats.waiting
    assert len(seats.state.model_dump_json().encode()) < HANDED_ON_BYTES


def test_a_project_of_many_does_not_hide_those_of_others() -> None:
    """The board keeps the first requests of each project, however many better scores another project has."""
    seats = seats_with(host_limit=8)
    for number in range(3 * MOST_WAITING):
        seats.wait(waits(f"{number}", "many", score=9))
    for name in "abc":
        seats.wait(waits(name, "few", score=-3))
    seats.keep_best(1.0)
    assert due(seats) == ["0", "1", "10", "100", "a", "b", "c"]


def test_one_behind_all_others_waits_until_it_is_known_who_was_passed_over() -> None:
    """A late request waits until the board has a list of the better requests that were passed over."""
    seats = few_places("a", "b", "c", scores=(9, 8, 7))
    seats.leave("a")
    seats.wait(waits("late", score=0))
    seats.leave("b")
    seats.keep_best(100.0)
    assert due(seats) == []
    assert seats.is_low
    seats.take_stock(WaitingOrders(waiting=(waits("c", score=7),)), 100.0)
    assert due(seats) == ["c"]
    assert not seats.passed_over


def test_who_was_passed_over_a_moment_ago_is_asked_for_again() -> None:
    """An empty list of the server counts only after a minute, since the server's lists are late."""
    seats = few_places("a", "b", "c", scores=(9, 8, 7))
    seats.take_stock(WaitingOrders(), 2.0)
    assert seats.passed_over
    seats.take_stock(WaitingOrders(), 90.0)
    assert not seats.passed_over


def few_places(*names: str, scores: tuple[int, ...]) -> Seats:
    seats = Seats(most_waiting=2)
    seats.hear(serves(host_limit=1), 0.0)
    for name, score in zip(names, scores, strict=True):
        seats.wait(waits(name, score=score))
    seats.keep_best(1.0)
    return seats


@given(
    st.lists(st.tuples(st.integers(-3, 9), st.sampled_from(["one", "two", "three"])), min_size=1, max_size=40),
    st.integers(4, 8),
    st.integers(1, 2),
    st.lists(st.booleans(), max_size=40),
)
def test_nobody_is_forgotten_by_a_board_that_remembers_few(
    given_scores: list[tuple[int, str]], most: int, project_limit: int, ends: list[bool]
) -> None:
    """A board that keeps few requests gives each request a seat exactly once."""
    seats, everyone, seated = Seats(most_waiting=most), {}, []
    seats.hear(serves(host_limit=2, project_limit=project_limit, seconds=1e9), 0.0)
    coming = [waits(f"w{at}", project, score, at) for at, (score, project) in enumerate(given_scores)]
    ends = [*ends, *[True] * 200]
    for now in range(100, 100 + 100 * len(ends), 100):
        if coming:
            everyone[coming[0].id] = coming[0]
            seats.wait(coming.pop(0))
        if ends.pop(0) and seats.holders:
            seats.leave(next(iter(seats.holders)))
        seats.keep_best(now)
        for each in seats.due(now):
            seats.seat(each)
            seated.append(everyone.pop(each.id).id)
        if seats.is_low or (seats.passed_over and not seats.holders):
            unknown = [each for each in everyone.values() if each.id not in seats.waiting]
            best = first_in_turn(unknown, project_limit)[:most]
            seats.take_stock(WaitingOrders(waiting=tuple(best), all=len(best) == len(unknown)), now)
    assert everyone == {}
    assert len(seated) == len(set(seated)) == len(given_scores)


orders = st.builds(
    waits,
    st.text("abcdef", min_size=1, max_size=3),
    st.sampled_from(["one", "two", "a" * 60]),
    st.integers(-3, 9),
    st.floats(0, 1e9),
)


@given(st.lists(orders), st.integers(0, 5), st.integers(1, 3))
def test_limits_hold_whatever_waits(waiting: list[SeatRequest], host_limit: int, project_limit: int) -> None:
    """The seats keep all limits, and no seat stays free that a waiting request may take."""
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
    """A board that is restored from its state in JSON equals the original board."""
    seats = seats_with(*waiting)
    for each in seats.due(1.0)[:2]:
        seats.seat(each)
    state = BoardState.model_validate_json(json.dumps(seats.state.model_dump(mode="json")))
    assert Seats.of(state) == seats
