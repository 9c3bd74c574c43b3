"""The deliveries of the forges in a trial, and their expected results."""

import random
from dataclasses import dataclass, field
from typing import Final

from fakes.forges.state import ForgeFake
from fakes.webhooks import SECRET, WEBHOOKS, Sent

LABELS: Final = ("septet", "also")
_OUTSIDERS: Final = 5
"""One of this many comments is by a person without write access."""


@dataclass
class Expected:
    """The expected results at the end, by forge."""

    orders: dict[str, set[int]] = field(default_factory=dict)
    """The issues with one work order each."""
    answers: dict[str, set[int]] = field(default_factory=dict)
    """The comments with one answer each; all others have none."""


def make_deliveries(forges: list[ForgeFake], count: int) -> tuple[list[Sent], Expected]:
    """Return deliveries of all forges: labelled issues, and comments with commands on issues without a label."""
    expected = Expected({each.name: set() for each in forges}, {each.name: set() for each in forges})
    deliveries = []
    for number in range(count):
        forge = forges[number % len(forges)]
        webhook, is_comment = WEBHOOKS[forge.name](forge, SECRET), number // len(forges) % 2 == 1
        issue = forge.add_issue(f"Totals {number} are wrong", labels=() if is_comment else LABELS)
        if not is_comment:
            deliveries.append(webhook.labelled(issue))
            expected.orders[forge.name].add(issue)
            continue
        is_outsider = number % _OUTSIDERS == 0
        command = "/septet run" if number % 3 else "/septet dance"
        deliveries.append(webhook.commented(issue, command, "eve" if is_outsider else "ada"))
        if not is_outsider:
            expected.answers[forge.name].add(forge.issues[issue].notes[-1].id)
            expected.orders[forge.name] |= {issue} if command == "/septet run" else set()
    return deliveries, expected


def in_some_order(deliveries: list[Sent], chance: random.Random) -> list[Sent]:
    """Return the deliveries in a random order, a third of them twice."""
    twice = chance.sample(deliveries, len(deliveries) // 3)
    everything = [*deliveries, *twice]
    chance.shuffle(everything)
    return everything
