"""The assignment of faults to work orders."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fakes.forges.state import Fault

_PUSH: Final = "/git-receive-pack"
_LIMITS: Final = {"github": 403, "gitlab": 429, "gitea": 429}
_SECONDARY: Final = "You have exceeded a secondary rate limit."
_EXISTS: Final = "A pull request already exists for this branch."

Make = Callable[[str, str], list[Fault]]
"""Makes the faults from the forge's name and a part of the branch's name."""


def _requests(forge: str) -> str:
    """Return the path of requests for new pull requests."""
    return "/merge_requests" if forge == "gitlab" else "/pulls"


KINDS: Final[dict[str, Make]] = {
    "created, answer dropped": lambda forge, head: [
        Fault("drop", method="POST", path=_requests(forge), about=head, after=True)
    ],
    "dropped": lambda forge, head: [Fault("drop", method="POST", path=_requests(forge), about=head)],
    "created, 500": lambda forge, head: [
        Fault(status=500, method="POST", path=_requests(forge), about=head, after=True)
    ],
    "502": lambda forge, head: [Fault(status=502, method="POST", path=_requests(forge), about=head)],
    "503 again and again": lambda forge, head: [
        Fault(status=503, method="POST", path=_requests(forge), about=head, times=3)
    ],
    "created, 422": lambda forge, head: [
        Fault(status=422, method="POST", path=_requests(forge), about=head, after=True, text=_EXISTS)
    ],
    "422 that is not so": lambda forge, head: [
        Fault(status=422, method="POST", path=_requests(forge), about=head, text=_EXISTS)
    ],
    "limit": lambda forge, head: [
        Fault(
            status=_LIMITS[forge],
            method="POST",
            path=_requests(forge),
            about=head,
            text=_SECONDARY,
            headers={"Retry-After": "1"},
        )
    ],
    "slow": lambda forge, head: [Fault("slow", method="POST", path=_requests(forge), about=head, seconds=1.0)],
    "created, wrong type": lambda forge, head: [
        Fault("wrong_type", method="POST", path=_requests(forge), about=head)
    ],
    "created, truncated": lambda forge, head: [
        Fault("truncated", method="POST", path=_requests(forge), about=head)
    ],
    "created, dropped, stale lists": lambda forge, head: [
        Fault("drop", method="POST", path=_requests(forge), about=head, after=True),
        Fault("stale", method="GET", path=_requests(forge), about="state", times=2),
    ],
    "pushed, answer dropped": lambda _, head: [Fault("drop", path=_PUSH, about=head, after=True)],
    "push 503": lambda _, head: [Fault(status=503, path=_PUSH, about=head)],
}
LONG_KINDS: Final[dict[str, Make]] = {
    "503 for two minutes": lambda forge, head: [
        Fault(status=503, method="POST", path=_requests(forge), about=head, times=6)
    ],
}
"""The long kinds, which a short trial leaves out. The pauses between the tries are 2, 4, 8, 16, 32, 60 s."""
_LONG_RUNS: Final = 100
"""The least work orders of a long trial."""


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """A work order with its fault."""

    id: str
    forge: str
    kind: str
    is_forked: bool = False
    """Whether its work is pushed to a fork."""

    @property
    def waits_long(self) -> bool:
        """Return whether its fault lasts for minutes."""
        return self.kind in LONG_KINDS


def plan(runs: int, seed: int, forges: tuple[str, ...]) -> list[PlannedOrder]:
    """Return this many work orders: each fault on each forge as often as any other, in a random order."""
    chance = random.Random(seed)  # noqa: S311 -- the same plan for the same seed is the point
    kinds = [*KINDS, *(LONG_KINDS if runs >= _LONG_RUNS else ())]
    pairs = [(forge, kind) for kind in kinds for forge in forges]
    chance.shuffle(pairs)
    return [
        # An id contains no other id; every fifth is on a fork, so that each fault meets both.
        PlannedOrder(f"wo-f{number:04}", *pairs[number % len(pairs)], is_forked=number % 5 == 0)
        for number in range(runs)
    ]


def faults_of(order: PlannedOrder) -> list[Fault]:
    """Return the faults of a work order."""
    return (KINDS | LONG_KINDS)[order.kind](order.forge, order.id)
