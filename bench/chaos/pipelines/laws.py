"""What must hold of a pipeline under the hand, by git, forge, documents, report and the agents' journal."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from bench.chaos.account import Account
from bench.chaos.evidence import head_of
from bench.chaos.ground import Ground
from bench.chaos.journal import Life
from bench.chaos.pipelines.watch import Watch, entries_in
from bench.chaos.plan import DEADLY
from bench.chaos.report import evidence
from bench.chaos.trial import Seen
from septet.pipelines.records import EXECUTION, PLANNING, REPORT, REPORT_TEXT

_PASSING_SECONDS: Final = 0.5
"""A result that an agent has printed is on disk so soon: a death before may have taken it along."""
_DYING_SECONDS: Final = 1.0
"""An agent whose supervisor was killed may come to note that it has begun before it dies as well."""
_NEAR_SECONDS: Final = 5.0


def broken(ground: Ground, watch: Watch, seen: Seen) -> tuple[str, ...]:
    """Return what does not hold, one line for each case."""
    account = Account(seen)
    laws = [f"{name}: see below" for name in account.all.broken]
    return (
        *laws,
        *evidence(account),
        *dict.fromkeys(watch.faults),
        *paid_twice(seen),
        *missing(watch.folder, ground.origins[0], ground.env, seen.orders),
    )


def paid_twice(seen: Seen) -> Iterator[str]:
    """Name each turn that was begun again though nothing had killed the one before."""
    turns: defaultdict[tuple[str, str], list[Life]] = defaultdict(list)
    for life in seen.lives:
        turns[life.order, life.step].append(life)
    for (order, step), lives in turns.items():
        for before, again in pairwise(lives):
            if not _was_killed(before, seen):
                blows = sorted(round(kill.at - before.began, 3) for kill in seen.kills if kill.kind in DEADLY)
                near = [seconds for seconds in blows if abs(seconds) < _NEAR_SECONDS]
                yield f"paid twice: {order} {step} ({before.name}, then {again.name}; blows around it: {near} s)"


def _was_killed(life: Life, seen: Seen) -> bool:
    """Say whether a blow at its process, or at its supervisor, took a turn with it."""
    process = {other.name for other in seen.lives if other.run == life.run}
    until = life.last + _PASSING_SECONDS if life.ended else float("inf")
    since = life.began - _DYING_SECONDS
    return any(kill.kind in DEADLY and kill.target in process and since <= kill.at <= until for kill in seen.kills)


def missing(folder: Path, origin: Path, env: Mapping[str, str], orders: Sequence[str]) -> Iterator[str]:
    """Name what documents and report do not say of each issue, or say otherwise than the origin."""
    try:
        documents = {name: _by_issue(entries_in(folder / name)) for name in (PLANNING, EXECUTION)}
        report = json.loads((folder / REPORT).read_bytes())
        text = (folder / REPORT_TEXT).read_text(encoding="utf-8")
    except (OSError, ValueError, KeyError) as error:
        yield f"documents: {error}"
        return
    issues = _by_issue(report["pipeline"]["issues"])
    if report["counts"] != {"completed": len(orders)} or report["pipeline"]["status"] != "completed":
        yield f"report: {report['pipeline']['status']}, {report['counts']}"
    for order in orders:
        issue = order.rpartition("-")[2]
        planned, executed = (documents[name].get(issue, {}) for name in (PLANNING, EXECUTION))
        told = issues.get(issue, {})
        commit = head_of(origin, f"chore-{order}-chaos", env)
        facts = {
            "the plan": planned.get("status") == "completed"
            and bool((planned.get("solution") or {}).get("tasks")),
            "the execution": executed.get("status") == "completed" and bool(executed.get("files_modified")),
            "the commit": commit is not None and commit == executed.get("commit_hash") == told.get("commit_hash"),
            "the pull request": bool(told.get("pr_url")),
            "the report's text": f"## {issue}:" in text,
        }
        yield from (f"{order}: {what} is not as it should be" for what, holds in facts.items() if not holds)


def _by_issue(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {entry["issue_id"]: entry for entry in entries}
