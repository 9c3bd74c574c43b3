"""Turns that were paid twice: begun again though no kill had ended the turn before."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from bench.chaos.journal import Life
from bench.chaos.kills import Kill
from bench.chaos.plan import DEADLY
from bench.chaos.trial import Seen

_PASSING_SECONDS: Final = 0.5
"""The seconds until a printed result is on disk: a death before may lose the result."""
_DYING_SECONDS: Final = 1.0
"""The seconds in which an agent may still record its start after its supervisor's kill."""
_KEPT_SECONDS: Final = 5.0
"""The seconds until a turn's work is on the checkpoint remote: the loss of a host before may lose the work."""
_NEAR_SECONDS: Final = 5.0


def paid_twice(seen: Seen) -> Iterator[str]:
    """Name each turn that was begun again though neither a kill nor a budget had ended the turn before."""
    turns: defaultdict[tuple[str, str], list[Life]] = defaultdict(list)
    for life in seen.lives:
        turns[life.order, life.step].append(life)
    stops = Counter((ledger.order, step) for ledger in seen.ledgers for step in ledger.stopped)
    for (order, step), lives in turns.items():
        for before, again in pairwise(lives):
            if not before.ended and stops[order, step]:
                stops[order, step] -= 1
            elif not _was_killed(before, seen):
                blows = sorted(round(kill.at - before.began, 3) for kill in seen.kills if kill.kind in DEADLY)
                near = [seconds for seconds in blows if abs(seconds) < _NEAR_SECONDS]
                yield f"paid twice: {order} {step} ({before.name}, then {again.name}; blows around it: {near} s)"


def _was_killed(life: Life, seen: Seen) -> bool:
    """Return whether a blow at its process, its supervisor or its host ended a turn."""
    process = {other.name for other in seen.lives if other.run == life.run}
    since = life.began - _DYING_SECONDS
    return any(
        (kill.kind == "host" or (kill.kind in DEADLY and kill.target in process))
        and since <= kill.at <= _taken_until(life, kill)
        for kill in seen.kills
    )


def _taken_until(life: Life, kill: Kill) -> float:
    """Return the moment after which a blow no longer ends a turn."""
    if not life.ended or (kill.cut_short and kill.target == life.name):
        return float("inf")
    return life.last + (_KEPT_SECONDS if kill.kind == "host" else _PASSING_SECONDS)
