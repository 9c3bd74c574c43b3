"""The laws that must hold for Septet in a trial."""

from bench.chaos.account import Account, Tally
from bench.chaos.payments import paid_twice
from bench.chaos.plan import HARMLESS, Kind

ADOPTION_SECONDS: dict[Kind, float] = {"worker": 2.0, "restart": 1.0}
"""The most seconds, at p95, from a worker's readiness to the adoption of an agent, if only workers die."""

PROCESSES = 2
"""The processes of a work order whose steps share sessions: the planner's and the implementor's."""


def broken(account: Account) -> tuple[str, ...]:
    """Return the laws that do not hold, each in a few words."""
    found = [*account.all.broken]
    if not account.seen.kills:
        found.append("no kill hit a living agent")
    if account.seen.plan.uses_budgets_up and not account.all.budgets_raised:
        found.append("no budget was used up")
    if account.seen.worker_ends:
        found.append("a worker ended by itself")
    if account.seen.unreplaced:
        found.append("a proxy was not replaced")
    if HARMLESS.issuperset(account.seen.plan.kinds) and account.all.agent_starts != account.all.agent_steps:
        found.append("agent_starts")
    if account.seen.plan.sessions == "shared":
        found += _shared(account)
    if account.seen.plan.rolling:
        found += _rolling(account.by_kind)
    return tuple(found)


def _shared(account: Account) -> list[str]:
    """Return the broken laws of shared sessions, in which a death between two turns costs no turn."""
    told = account.all
    found = ["paid_twice"] if any(paid_twice(account.seen)) else []
    spared = HARMLESS.issuperset(account.seen.plan.kinds)
    return [*found, "agent_processes"] if spared and told.agent_processes != PROCESSES * told.runs else found


def _rolling(by_kind: dict[Kind, Tally]) -> list[str]:
    found = []
    for kind, limit in ADOPTION_SECONDS.items():
        if kind not in by_kind:
            continue
        p95 = by_kind[kind].adoption_seconds.p95
        if p95 is None:
            found.append(f"no adoption was seen after {kind}")
        elif p95 > limit:
            found.append(f"adoption_seconds of {kind}: {p95} s")
    return found
