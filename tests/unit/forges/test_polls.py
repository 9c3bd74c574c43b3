"""One conditional request reads the state of many pull requests of a repository."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.forges.connecting import FAKES, connected
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Fault, ForgeFake, PullState

from septet.errors import ForgeUnavailableError
from septet.forges.events.polls import LONGEST_SECONDS, TOLD_SECONDS, PullRequestPolls
from septet.forges.forge import Forge

HOUR = 3600
MANY = 2_000
OF_EACH_FORGE = pytest.mark.parametrize(
    "fake",
    [pytest.param(forge, marks=[pytest.mark.release] if forge is not GitHubFake else []) for forge in FAKES],
    ids=lambda forge: forge.name,
    indirect=True,
)
"""A slow test runs for all forges before a release, and always for GitHub."""


@pytest.fixture(params=FAKES, ids=lambda fake: fake.name)
def fake(request: pytest.FixtureRequest) -> Iterator[ForgeFake]:
    """Return a forge with thirty open pull requests."""
    heads = {"main": "a" * 40} | {f"feat-{number}": f"{number:040x}" for number in range(1, 161)}
    with serving_forge(request.param(heads={"o/foo.js": heads})) as fake:
        for number in range(1, 31):
            fake.open_pull("o/foo.js", f"feat-{number}", "main", "A thing", "")
        yield fake


@pytest.fixture
def forge(fake: ForgeFake, tmp_path: Path) -> Forge:
    """Return the forge with the client that a worker uses."""
    return connected(fake, tmp_path)


@dataclass
class Clock:
    """A clock that a test moves."""

    now: float = 0.0

    def __call__(self) -> float:
        """Return the current time of the clock."""
        return self.now


def states(polls: PullRequestPolls, forge: Forge, fake: ForgeFake) -> list[str]:
    """Return the states of all pull requests."""
    return [polls.state("it", forge, number) for number in sorted(fake.pulls)]


def test_an_hour_of_looks_costs_a_question_a_minute(fake: ForgeFake, forge: Forge) -> None:
    """Thirty pull requests that are polled every 30 seconds for an hour cost at most one request a minute."""
    clock = Clock()
    polls = PullRequestPolls(5.0, clock)
    states(polls, forge, fake)
    clock.now = 20 * 60
    states(polls, forge, fake)
    fake.asked.clear()
    for clock.now in range(30 * 60, 30 * 60 + HOUR, 30):
        assert set(states(polls, forge, fake)) == {"open"}
    assert len(fake.asked) <= HOUR / LONGEST_SECONDS
    if fake.has_etags:
        assert all("if-none-match" in asked.headers for asked in fake.asked)


@OF_EACH_FORGE
def test_where_webhooks_tell_thousands_of_open_ones_cost_a_dozen_questions(fake: ForgeFake, forge: Forge) -> None:
    """At first a request for each page, and then a request in five minutes, which finds a merge without a webhook."""
    for number in range(31, MANY + 1):
        fake.pulls[number] = PullState(number, "o/foo.js", "feat-1", "main", "A thing", "", draft=False)
        fake.touch(fake.pulls[number])
    clock = Clock()
    polls = PullRequestPolls(5.0, clock, is_told=lambda key: key == "it")
    assert states(polls, forge, fake) == ["open"] * MANY
    assert len(fake.asked) <= MANY / 50 + 1  # one request for each page; Gitea's pages have 50 entries
    fake.asked.clear()
    numbers = sorted(fake.pulls)
    for clock.now in range(0, HOUR, 6):
        fake.touch(fake.pulls[numbers[-1]])
        share = int(clock.now) // 6 % 100
        assert {polls.state("it", forge, number) for number in numbers[share::100]} == {"open"}
    assert len(fake.asked) <= HOUR / TOLD_SECONDS
    fake.end_pull(numbers[0], "merged")
    clock.now += TOLD_SECONDS
    assert polls.state("it", forge, numbers[0]) == "merged"


def test_more_changes_than_a_page_holds_are_not_missed(fake: ForgeFake, forge: Forge) -> None:
    """The poll reads the next pages if a page contains only new pull requests, and finds a merge and a close."""
    clock = Clock()
    polls = PullRequestPolls(5.0, clock)
    states(polls, forge, fake)
    first, second = sorted(fake.pulls)[:2]
    fake.end_pull(first, "merged")
    fake.end_pull(second, "closed")
    for number in range(31, 161):
        fake.open_pull("o/foo.js", f"feat-{number}", "main", "A thing", "")
    clock.now = 6.0
    fake.asked.clear()
    assert states(polls, forge, fake) == ["merged", "closed", *["open"] * 158]
    assert len(fake.asked) <= 4


def test_one_that_no_page_tells_of_is_asked_for_once(fake: ForgeFake, forge: Forge) -> None:
    """The poll requests a pull request by number, once, if no page lists it yet."""
    polls = PullRequestPolls(5.0, Clock())
    fake.faults = [Fault("stale", method="GET")]
    fake.asked.clear()
    number = min(fake.pulls)
    assert polls.state("it", forge, number) == polls.state("it", forge, number) == "open"
    assert len(fake.asked) == 2


def test_a_forge_that_is_away_is_asked_once(fake: ForgeFake, forge: Forge) -> None:
    """All polls within the pause after an error get the same error, and the next poll sends a new request."""
    clock = Clock()
    polls = PullRequestPolls(5.0, clock)
    fake.faults = [Fault(status=503)]
    fake.asked.clear()
    for number in sorted(fake.pulls):
        with pytest.raises(ForgeUnavailableError):
            polls.state("it", forge, number)
    assert len(fake.asked) == 1
    clock.now = 6.0
    assert set(states(polls, forge, fake)) == {"open"}
