"""The figures of a trial, for each kind of kill and in total."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bench.chaos.journal import Life
from bench.chaos.kills import Kill
from bench.chaos.plan import DEADLY, Kind
from bench.chaos.trial import Seen
from bench.figure import percentile

_SURVIVED_SECONDS = 2.0
"""An agent that still works this many seconds after a kill of its worker was not hurt."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the slow end of some measurements, in seconds; `None` without a measurement."""

    p50: float | None
    p95: float | None

    @classmethod
    def of(cls, seconds: list[float]) -> "Spread":
        """Return the spread of these measurements."""
        if not seconds:
            return cls(None, None)
        return cls(round(percentile(seconds, 50), 3), round(percentile(seconds, 95), 3))


@dataclass(frozen=True, slots=True)
class Tally:
    """The figures of one kind of kill, or of all; for a kind, `runs` are the work orders that it hit."""

    seed: int
    runs: int
    completed: int
    wall_seconds: float
    kills: int
    lost_bytes: int
    duplicate_commits: int
    duplicate_pushes: int
    duplicate_pull_requests: int
    double_writers: int
    orphans: int
    tokens_counted: int
    """The tokens counted by the accounts of budgets."""
    tokens_miscounted: int
    """The tokens by which the accounts differ from the agents' output, above or below."""
    budgets_raised: int
    """The number of raises of used-up budgets."""
    over_budgets: int
    """The work orders that exceeded their budget by more than one turn."""
    agent_steps: int
    agent_starts: int
    """The turns that were begun; if steps share no session, each is the start of a process."""
    agent_processes: int
    agent_seconds_repaid: float
    recovery_seconds: Spread
    adoption_seconds: Spread
    recovered_by: Mapping[str, int] = field(default_factory=dict)

    @property
    def broken(self) -> tuple[str, ...]:
        """Return the laws that do not hold."""
        zero = {
            "lost_bytes": self.lost_bytes,
            "duplicate_commits": self.duplicate_commits,
            "duplicate_pushes": self.duplicate_pushes,
            "duplicate_pull_requests": self.duplicate_pull_requests,
            "double_writers": self.double_writers,
            "orphans": self.orphans,
            "tokens_miscounted": self.tokens_miscounted,
            "over_budgets": self.over_budgets,
            "not_completed": self.runs - self.completed,
        }
        return tuple(name for name, count in zero.items() if count)


@dataclass(frozen=True)
class Account:
    """The result of a trial."""

    seen: Seen

    @cached_property
    def all(self) -> Tally:
        """Return the figures of the whole trial."""
        return self._tally(None)

    @cached_property
    def by_kind(self) -> dict[Kind, Tally]:
        """Return the figures of each kind of kill; a failure counts for the kill before it."""
        return {kind: self._tally(kind) for kind in dict.fromkeys(kill.kind for kill in self.seen.kills)}

    @cached_property
    def lost(self) -> list[tuple[Life, str, int]]:
        """Return the contents that are stored nowhere any more: agent, path and bytes.

        Of several writes by one process to a path the last counts; after an interrupted write either content is
        accepted. The work of an agent that died with its host's disk does not count: only checkpoints do.
        """
        found = []
        for life in self.seen.lives:
            if self._last_kind(life) == "host":
                continue
            for path, content in life.written.items():
                either = {content.blob, life.pending.get(path, content).blob}
                if not either & self.seen.kept:
                    found.append((life, path, content.size))
        return found

    def recovery_seconds(self, kill: Kill, life: Life) -> float | None:
        """Return the seconds from a kill to the next progress of the work order; `None` without progress."""
        hurt = kill.kind in DEADLY or not self._unhurt(kill, life)
        moments = [moment for moment in ([] if hurt else life.notes) if moment > kill.at]
        if hurt:
            moments = [
                other.began for other in self.seen.lives if other.order == life.order and other.began > kill.at
            ]
        return min(moments) - kill.at if moments else None

    def _unhurt(self, kill: Kill, life: Life) -> bool:
        """Return whether an agent worked on after the kill, or died later by another kill aimed at it."""
        later = any(
            other.target == life.name and other.kind in DEADLY and other.at > kill.at for other in self.seen.kills
        )
        return life.ended or later or life.last > kill.at + _SURVIVED_SECONDS

    def _tally(self, kind: Kind | None) -> Tally:
        seen = self.seen
        kills = [kill for kill in seen.kills if kind in {None, kill.kind}]
        hit = {name for kill in kills for name in kill.hits}
        lives = [life for life in seen.lives if kind is None or life.name in hit]
        orders = set(seen.orders) if kind is None else {life.order for life in lives}
        steps = {(life.order, life.step) for life in lives}
        delivered = [each for each in seen.delivered if each.order in orders]
        extra = [life for life in self._extra if kind in {None, self._blamed(life)}]
        recoveries = [
            self.recovery_seconds(kill, life) for kill in kills for life in seen.lives if life.name in kill.hits
        ]
        return Tally(
            seed=seen.plan.seed,
            runs=len(orders),
            completed=sum(each.completed for each in delivered),
            wall_seconds=round(seen.wall_seconds, 1),
            kills=len(kills),
            lost_bytes=sum(size for life, _, size in self.lost if kind in {None, self._last_kind(life)}),
            duplicate_commits=sum(max(each.commits - 1, 0) for each in delivered),
            duplicate_pushes=sum(max(each.pushes - 1, 0) for each in delivered),
            duplicate_pull_requests=sum(max(each.pull_requests - 1, 0) for each in delivered),
            double_writers=sum(life.second for life in seen.lives if kind in {None, self._blamed(life)}),
            orphans=len(seen.orphans) if kind is None else sum(self._orphan_of(kind)),
            tokens_counted=sum(each.counted for each in seen.ledgers if each.order in orders),
            tokens_miscounted=sum(
                abs(each.counted - each.streamed) for each in seen.ledgers if each.order in orders
            ),
            budgets_raised=sum(seen.raises.get(order, 0) for order in orders),
            over_budgets=sum(not each.is_within for each in seen.ledgers if each.order in orders),
            agent_steps=len(steps),
            agent_starts=len(steps) + len(extra),
            agent_processes=len({(life.order, life.run) for life in lives}),
            agent_seconds_repaid=round(sum(self._repaid(step, kind) for step in self._steps), 1),
            recovery_seconds=Spread.of([seconds for seconds in recoveries if seconds is not None]),
            adoption_seconds=Spread.of([each.seconds for each in seen.adoptions if kind in {None, each.kind}]),
            recovered_by=dict(Counter(seen.rungs)) if kind is None else {},
        )

    @cached_property
    def _steps(self) -> dict[tuple[str, str], list[Life]]:
        """Return the agents of each step, in the order of their starts."""
        steps = defaultdict(list)
        for life in self.seen.lives:
            steps[life.order, life.step].append(life)
        return dict(steps)

    @cached_property
    def _extra(self) -> list[Life]:
        """Return the agents that were started for a step after its first agent."""
        return [life for lives in self._steps.values() for life in lives[1:]]

    def _repaid(self, step: tuple[str, str], kind: Kind | None) -> float:
        """Return the seconds that a step's agents worked beyond the step's units.

        Only a step with several agents has such seconds. They count for the kill that caused the last start.
        """
        lives = self._steps[step]
        if len(lives) == 1 or kind not in {None, self._blamed(lives[-1])}:
            return 0.0
        units = {number: seconds for life in lives for number, seconds in life.units.items()}
        return max(sum(life.seconds for life in lives) - sum(units.values()), 0.0)

    def _blamed(self, life: Life) -> Kind | None:
        """Return the kind of kill that ended the agent before, and so caused an agent's start."""
        before = [other for other in self.seen.lives if other.order == life.order and other.began < life.began]
        return self._last_kind(before[-1], until=life.began) if before else None

    def _last_kind(self, life: Life, until: float = float("inf")) -> Kind | None:
        """Return the kind of kill that ended an agent, or else the last kind that hit it."""
        hits = [kill for kill in self.seen.kills if life.name in kill.hits and kill.at <= until]
        deadly = [kill for kill in hits if kill.kind in DEADLY]
        return next((kill.kind for kill in reversed(deadly or hits)), None)

    def _orphan_of(self, kind: Kind) -> Iterable[bool]:
        """Yield for each orphan whether this kind of kill ended the agent that left it."""
        for pid in self.seen.orphans:
            owner = next((life for life in self.seen.lives if pid in {life.pid, *life.tools}), None)
            yield owner is not None and self._last_kind(owner) == kind
