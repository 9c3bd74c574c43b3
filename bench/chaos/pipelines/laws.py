"""The laws of a pipeline under kills, by git, forge, documents, report and the agents' journal."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.chaos.account import Account
from bench.chaos.evidence import head_of
from bench.chaos.ground import Ground
from bench.chaos.payments import paid_twice
from bench.chaos.pipelines.watch import Watch, entries_in
from bench.chaos.report import evidence
from bench.chaos.trial import Seen
from septet.pipelines.records import EXECUTION, PLANNING, REPORT, REPORT_TEXT


def broken(ground: Ground, watch: Watch, seen: Seen) -> tuple[str, ...]:
    """Return the broken laws, one line for each case."""
    account = Account(seen)
    laws = [f"{name}: see below" for name in account.all.broken]
    return (
        *laws,
        *evidence(account),
        *dict.fromkeys(watch.faults),
        *paid_twice(seen),
        *missing(watch.folder, ground.origins[0], ground.env, seen.orders),
    )


def missing(folder: Path, origin: Path, env: Mapping[str, str], orders: Sequence[str]) -> Iterator[str]:
    """Yield the facts of each issue that documents or report lack, or state otherwise than the origin."""
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
        commit = head_of(origin, f"septet/chore-{order}-chaos", env)
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
