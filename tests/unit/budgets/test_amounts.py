"""The forms of a budget, and the sums of what was used."""

import pytest

from septet.contracts.amounts import Limit, Spending, amount_to_add, describe_spending, parse_limit, usd_text
from septet.contracts.facts import Usage


@pytest.mark.parametrize(
    ("text", "limit", "written"),
    [
        ("0.25USD", Limit(usd=0.25), "0.25usd"),
        ("2Mtok", Limit(tokens=2_000_000), "2Mtok"),
        ("500 ktok", Limit(tokens=500_000), "500ktok"),
        ("2000.5ktok", Limit(tokens=2_000_500), "2000500tok"),
        ("1.5h", Limit(minutes=90.0), "90min"),
        ("5usd, 2h", Limit(usd=5.0, minutes=120.0), "5usd,120min"),
        ("20usd/day", Limit(usd=20.0, daily=True), "20usd/day"),
        ("999999999.5Mtok", Limit(tokens=999_999_999_500_000), "999999999500ktok"),
        ("100000000000h", Limit(minutes=6e12), "6000000000000min"),
    ],
)
def test_a_limit_is_read_as_it_is_written(text: str, limit: Limit, written: str) -> None:
    """Each form has one meaning, and its plain form has the same meaning."""
    assert parse_limit(text) == limit
    assert str(limit) == written
    assert parse_limit(written) == limit


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "-5usd",
        "0usd",
        "5usd,6usd",
        "5eur",
        "5usd/week",
        "1e9usd",
        "0.1tok",
        "1000000001Mtok",
        "100000000000000h",
    ],
)
def test_what_is_not_a_limit_is_refused(text: str) -> None:
    """Wrong units, missing units, zero, repeated units and an amount that could not be read again are refused."""
    with pytest.raises(ValueError, match=r"budget|twice|0|token|too large an amount"):
        parse_limit(text)


def test_what_was_used_since_is_one_turn_at_most() -> None:
    """Only the increase since the last report counts, as one turn; a decrease counts as nothing."""
    before = Spending.of(Usage(input_tokens=10, cost_usd=0.1), 2.0)
    after = Spending.of(Usage(input_tokens=30, cost_usd=0.3), 5.0)
    assert after.since(before) == Spending(usd=0.2, tokens=20, seconds=3.0, turns=1)
    assert after.since(after) == Spending()
    assert before.since(after) == Spending()
    killed = Spending.of(Usage(input_tokens=5), 1.0)
    both = killed.plus(before)
    assert [killed.since(Spending()).unpriced, both.since(before).unpriced, both.since(killed).unpriced] == [
        1,
        1,
        0,
    ]


@pytest.mark.parametrize(
    ("use", "limit", "words"),
    [
        (Spending(usd=0.00123), "5usd", "0.0012 of 5.00 USD"),
        (Spending(usd=0.01), "0.001usd/day", "0.010 of 0.001 USD"),
        (Spending(usd=0.0123), "0.0125usd", "0.0123 of 0.0125 USD"),
        (Spending(seconds=0.12), "0.001min", "0.002 of 0.001 minutes"),
        (Spending(seconds=90), "1.5h", "1.5 of 90 minutes"),
    ],
)
def test_what_was_used_has_as_many_digits_as_its_limit(use: Spending, limit: str, words: str) -> None:
    """Use and limit below a cent are shown with enough digits."""
    assert describe_spending(use, parse_limit(limit)) == words


@pytest.mark.parametrize(
    ("usd", "text"),
    [(0.0, "0.00"), (0.000001, "0.000001"), (0.0049, "0.0049"), (0.00996, "0.0100"), (1.5, "1.50")],
)
def test_less_than_a_cent_is_not_shown_as_nothing(usd: float, text: str) -> None:
    """An amount below a cent has two significant digits."""
    assert usd_text(usd) == text


def test_a_budget_is_to_be_raised_by_its_own_limit() -> None:
    """The amount is the used-up unit's limit, or a multiple if the limit alone would not be enough."""
    limit = parse_limit("22ktok,5usd")
    assert amount_to_add(limit, Spending(tokens=22_132)) == "22ktok"
    assert amount_to_add(limit, Spending(tokens=51_000)) == "44ktok"
    assert amount_to_add(limit, Spending()) == "5usd,22ktok"


def test_a_limit_that_is_raised_again_and_again_can_be_read_each_time() -> None:
    """Ten times three cents are 0.3 USD, without rounding errors that could not be read again."""
    limit = parse_limit("0.03usd,0.1min")
    for _ in range(9):
        limit = parse_limit(str(limit.plus(parse_limit("0.03usd,0.1min"))))
    assert str(limit) == "0.3usd,1min"
    assert str(Limit(usd=0.1 + 0.2)) == "0.3usd"
    assert str(parse_limit("0.000001usd")) == "0.000001usd"
