"""The choice of an intake for an issue if several intakes of a repository could take the issue."""

from itertools import permutations

import pytest

from activities.intake.issues import in_turn
from septet.contracts.intake import IntakeInput, choose_intake

INTAKES = tuple(
    IntakeInput(repository="https://github.com/o/r", label=label, approve_plan=approve_plan)
    for label, approve_plan in (("bug", False), ("careful", True), ("docs", False), ("exact", True))
)


@pytest.mark.parametrize(
    ("labels", "chosen"),
    [
        ((), "careful"),
        (("other",), "careful"),
        (("docs",), "docs"),
        (("docs", "bug"), "bug"),
        (("docs", "exact"), "exact"),
        (("exact", "careful", "bug"), "careful"),
    ],
)
def test_the_choice_depends_on_labels_and_options_alone(labels: tuple[str, ...], chosen: str) -> None:
    """A label of the issue counts first, then an approval, then the alphabet; the order never counts."""
    assert {choose_intake(order, labels).label for order in permutations(INTAKES)} == {chosen}


def test_issues_that_were_not_taken_keep_no_others_from_their_turn() -> None:
    """New issues come first, and then twenty of the issues that were passed over: strangers may label hundreds."""
    passed_over = tuple(range(1, 301))
    numbers = [*passed_over, 301, 302]
    assert in_turn(numbers, passed_over) == (301, 302, *range(1, 21))
    assert in_turn(numbers, (*passed_over[20:], *passed_over[:20]))[:3] == (301, 302, 21)
    assert in_turn([2, 3], ()) == (2, 3)
