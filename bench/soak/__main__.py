"""`python -m bench.soak [--minutes N] [--seed N]`: run orders under kills for hours; check that nothing grows."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.chaos.account import Account
from bench.chaos.laws import broken
from bench.chaos.plan import Plan
from bench.chaos.report import evidence
from bench.machine import machine, version
from bench.report import RESULTS, write_figures
from bench.soak.samples import Sample
from bench.soak.slopes import SETTLED, Slope, envelope_of, slope_of
from bench.soak.sweep import CACHED, KEEP, MOST_EVENTS
from bench.soak.trial import KINDS, soaked
from bench.soak.verdicts import is_flat, verdict_of
from septet.system.own_process import end_process

_TERMINATED: Final = 143
"""The exit code after SIGTERM, 128 + 15, as in a shell."""
_MANY: Final = 10_000
_SAMPLES: Final = 480
"""The samples in all, however long the soak takes."""
_COLLECTED: Final = 12
"""The samples of three minutes, at least one of which follows a collection of the server's garbage."""
_FILE_COLUMNS: Final = 140
_NAMES: Final = {
    "worker_memory": "worker's memory, MB",
    "worker_files": "worker's open files",
    "server_memory": "server's memory, MB",
    "server_live": "of that live, MB",
    "server_files": "server's open files",
    "disk": "state directory without mirrors, MB",
    "mirrors": "mirrors, MB",
    "branches": "branches of their origins",
    "database": "server's database, MB",
    "rows": "of that in use, MB",
    "queues": "task queues of workers' processes",
    "timers": "timers",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the soak; the exit code is 1 if a measure grows or a law is broken."""
    asked = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that started processes are stopped
    plan = Plan(
        runs=_MANY, at_once=asked.at_once, seed=asked.seed, kinds=KINDS, every_seconds=asked.every_seconds,
        step_seconds=asked.step_seconds, minutes=asked.minutes, keep=asked.keep,
    )  # fmt: skip
    on, of = machine(), version()
    seen, samples = asyncio.run(soaked(plan, max(asked.minutes * 60 / _SAMPLES, 1.0)))
    account = Account(seen)
    slopes, laws = _slopes(samples), list(broken(account))
    uncounted = len(seen.orders) - len(seen.ledgers)
    laws += ["uncounted"] if uncounted else []
    console = Console()
    if not console.is_terminal:
        console.width = _FILE_COLUMNS
    done = f"{account.all.completed} of {account.all.runs} work orders, {account.all.kills} kills"
    soak = f"Soak of {asked.minutes:g} minutes, seed {plan.seed}: {done}"
    console.print(_table(slopes, f"{soak}. Septet {of}, load {on.load_before}"))
    for line in evidence(account):
        console.print(line, style="red", markup=False)
    if uncounted:
        console.print(f"uncounted: of {uncounted} work orders nobody could ask the account", style="red")
    console.print(f"Broken: {', '.join(laws)}" if laws else "Every law holds.")
    console.print(_terms(asked.minutes), markup=False)
    print(write_figures(RESULTS / "soak.json", {
        "plan": asdict(plan), "broken": laws,
        "account": asdict(account.all), "slopes": {name: asdict(slope) for name, slope in slopes.items()},
        "samples": [asdict(sample) for sample in samples],
    }, on))  # fmt: skip
    return 1 if laws or not all(is_flat(name, slopes) for name in slopes) else 0


def _terms(minutes: float) -> str:
    """Return a text about the shortened times and the part that was measured."""
    return (
        f"What is kept for days or weeks was kept for {KEEP.total_seconds() / 60:g} minutes: workspaces, runs, "
        "snapshots, what they have left in the vault, closed workflows, and the accounts of the budgets of closed "
        "work orders. Each minute what waited for its review was moved to done. "
        f"A worker kept {CACHED} workflows in memory, and one that goes on for ever began anew after "
        f"{MOST_EVENTS} events. "
        f"The lines are laid through the last {minutes * (1 - SETTLED):g} of {minutes:g} minutes."
    )


def _slopes(samples: Sequence[Sample]) -> dict[str, Slope]:
    moments = [sample.at for sample in samples]
    series = {name: [getattr(sample, name) for sample in samples] for name in _NAMES}
    series["server_live"] = envelope_of(series["server_live"], _COLLECTED)
    return {name: slope_of(moments, values) for name, values in series.items()}


def _table(slopes: Mapping[str, Slope], title: str) -> Table:
    drawn = Table(
        "what",
        "on average",
        "per hour",
        "rise in all",
        "noise about the line",
        "",
        title=title,
        title_justify="left",
    )
    for name, slope in slopes.items():
        row = (f"{slope.middle:,.1f}", f"{slope.per_hour:+,.2f}", f"{slope.rise:+,.2f}", f"{slope.noise:,.2f}")
        drawn.add_row(_NAMES[name], *row, verdict_of(name, slopes))
    return drawn


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="soak", description="Work under kills for hours, and see that nothing grows."
    )
    parser.add_argument("--minutes", type=float, default=120.0, help="start no work order after so long (120)")
    parser.add_argument("--at-once", type=int, default=2, help="work orders at once (default: 2)")
    parser.add_argument("--seed", type=int, default=7, help="of the hand that kills (default: 7)")
    parser.add_argument("--step-seconds", type=float, default=2.0, help="what an agent works in a step (2)")
    parser.add_argument("--every-seconds", type=float, default=8.0, help="between two kills, on average (8)")
    parser.add_argument("--keep", action="store_true", help="leave the folder, to look at")
    return parser.parse_args(argv)


if __name__ == "__main__":
    end_process(main())
