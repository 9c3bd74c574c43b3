"""The pauses between two polls of a pull request."""

from workers.watching.pull_request_polls import LookPace

PACE = LookPace(first_seconds=5.0, longest_seconds=300.0)


def ages_of_looks(first_age: float, until: float) -> list[float]:
    looks, age = [first_age], first_age
    while (age := age + 1) < until:
        if PACE.is_over(age - looks[-1], age):
            looks.append(age)
    return looks


def test_pauses_double_up_to_the_longest() -> None:
    """The pauses double with the age of the pull request, up to five minutes."""
    assert ages_of_looks(2, 1500) == [2, 7, 14, 28, 56, 112, 224, 448, 748, 1048, 1348]
