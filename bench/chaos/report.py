"""The output of the chaos program: a table, and the figures in `bench/results/chaos.json`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from bench.chaos.account import Account, Tally
from bench.chaos.payments import paid_twice
from bench.chaos.plan import Plan

_SHOWN = 20
_COLUMNS = (
    "kills of", "kills", "completed", "lost", "twice: commits, pushes, PRs", "two writers", "orphans",
    "miscounted", "budgets raised", "above a budget", "steps", "starts", "processes", "paid again",
    "recovery p50", "p95", "adoption p95",
)  # fmt: skip


def table(accounts: Mapping[str, Account], title: str) -> Table:
    """Return the figures of each side as a table."""
    drawn = Table(title=title, title_justify="left")
    for heading in _COLUMNS:
        drawn.add_column(heading, justify="left" if heading == _COLUMNS[0] else "right")
    for side, account in accounts.items():
        drawn.add_section()
        drawn.add_row(Text(side, style="bold"))
        for kind, tally in account.by_kind.items():
            drawn.add_row(*_row(kind, tally, dim=True))
        drawn.add_row(*_row("in all", account.all, dim=False))
    return drawn


def as_json(accounts: Mapping[str, Account], plan: Plan, broken: tuple[str, ...]) -> dict[str, Any]:
    """Return Septet's figures, also by kind, and those of the other sides."""
    own, *others = accounts.items()
    return {
        "plan": asdict(plan),
        "broken": broken,
        **_figures(own[1]),
        **{side: _figures(account) for side, account in others},
    }


def evidence(account: Account) -> list[str]:
    """Return a line for each failure, for a search of its cause."""
    seen = account.seen
    lost = [
        f"lost: {size} bytes of {life.order} {life.step} {path} ({life.name})" for life, path, size in account.lost
    ]
    doubled = [f"delivered twice: {each}" for each in seen.delivered if max(each.commits, each.pushes) > 1]
    missing = [
        f"not completed: {each.order}, {seen.ends.get(each.order) or 'whose end nobody told'}"
        for each in seen.delivered
        if not each.completed
    ]
    second = [f"two writers: {life.order} {life.step} ({life.name})" for life in seen.lives if life.second]
    orphans = [f"orphan: {pid.number} {command}" for pid, command in seen.orphans.items()]
    uneven = [f"miscounted: {each}" for each in seen.ledgers if not each.is_even]
    uneven += [f"above its budget: {each}" for each in seen.ledgers if not each.is_within]
    ends = [f"a worker ended by itself: {said}" for said in seen.worker_ends]
    unreplaced = [f"left without a proxy: {name}" for name in seen.unreplaced]
    lines = [*ends, *unreplaced, *missing, *lost, *doubled, *second, *orphans, *uneven]
    lines += paid_twice(seen) if seen.plan.sessions == "shared" else ()
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return lines[:_SHOWN] + more


def _figures(account: Account) -> dict[str, Any]:
    return {
        **asdict(account.all),
        "by_kind": {kind: asdict(tally) for kind, tally in account.by_kind.items()},
    }


def _row(name: str, tally: Tally, *, dim: bool) -> tuple[Text, ...]:
    style = "dim" if dim else ""
    doubles = (tally.duplicate_commits, tally.duplicate_pushes, tally.duplicate_pull_requests)
    recovery, adoption = tally.recovery_seconds, tally.adoption_seconds
    return (
        Text(name, style=style),
        Text(str(tally.kills), style=style),
        _told(f"{tally.completed} of {tally.runs}", style, wrong=tally.completed < tally.runs),
        _told(f"{tally.lost_bytes:,} B", style, wrong=tally.lost_bytes > 0),
        _told(" ".join(map(str, doubles)), style, wrong=any(doubles)),
        _told(str(tally.double_writers), style, wrong=tally.double_writers > 0),
        _told(str(tally.orphans), style, wrong=tally.orphans > 0),
        _told(f"{tally.tokens_miscounted:,}", style, wrong=tally.tokens_miscounted > 0),
        Text(str(tally.budgets_raised), style=style),
        _told(str(tally.over_budgets), style, wrong=tally.over_budgets > 0),
        Text(str(tally.agent_steps), style=style),
        Text(str(tally.agent_starts), style=style),
        Text(str(tally.agent_processes), style=style),
        Text(f"{tally.agent_seconds_repaid:.1f} s", style=style),
        *(Text(_seconds(value), style=style) for value in (recovery.p50, recovery.p95, adoption.p95)),
    )


def _told(text: str, style: str, *, wrong: bool) -> Text:
    return Text(text, style="bold red" if wrong else style)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"
