"""`python -m bench.chaos [--runs N] [--seed N] [--kinds worker,agent]`: kill, look, print a table, write JSON."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import cast, get_args

from rich.console import Console

from bench.chaos.account import Account
from bench.chaos.laws import broken
from bench.chaos.plan import BUDGET, KINDS, ROLLING_STEP_SECONDS, USUAL, Kind, Plan
from bench.chaos.proxies import can_confine
from bench.chaos.report import as_json, evidence, table
from bench.chaos.side import sides
from bench.chaos.slow_disk import can_slow_disk
from bench.chaos.trial import tried
from bench.machine import machine, version
from bench.report import RESULTS, write_figures
from septet.contracts.names import Sessions
from septet.settings import Settings
from septet.system.own_process import end_process

_TERMINATED = 143
"""The exit code after SIGTERM, 128 + 15, as in a shell."""
_MANY = 10_000
_FILE_COLUMNS = 200
"""The table's width without a terminal."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trials; the exit code is 1 if a law is broken."""
    asked = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that started processes are stopped
    plan = without_impossible(_plan(asked))
    on, of = machine(), version()
    console = Console()
    if not console.is_terminal:
        console.width = _FILE_COLUMNS
    struck = sides(plan, naive=asked.naive)
    accounts: dict[str, Account] = {}
    for side in struck:
        with console.status(f"{plan.runs} work orders: {side.name}"):
            seen = asyncio.run(tried(side, plan))
        account = accounts[side.name] = Account(seen)
        console.print(_summary(side.name, account))
        plan = replace(plan, kills_at_most=len(seen.kills), runs=len(seen.orders), minutes=None)
    own = accounts[struck[0].name]
    laws = broken(own)
    where = f"{on.cores} cores of {on.cpu}, load {on.load_before}"
    console.print(table(accounts, f"Chaos, seed {plan.seed}. Septet {of}: {where}"))
    for line in evidence(own):
        console.print(line, style="red", markup=False)
    console.print(f"Broken: {', '.join(laws)}" if laws else "Every law holds.")
    print(write_figures(RESULTS / "chaos.json", as_json(accounts, own.seen.plan, laws), on))
    return 1 if laws else 0


def without_impossible(plan: Plan) -> Plan:
    """Return the plan without the kinds that this machine cannot do, and print each reason."""
    impossible = set()
    if "slow-disk" in plan.kinds and not can_slow_disk():
        print("slow-disk is left out: it needs strace, and the right to trace (`apt-get install strace`).")
        impossible.add("slow-disk")
    if "proxy" in plan.kinds and not can_confine():
        print("proxy is left out: only guests in a sandbox have one (`septet doctor` says what is missing).")
        impossible.add("proxy")
    return replace(plan, kinds=tuple(kind for kind in plan.kinds if kind not in impossible))


def _summary(side: str, account: Account) -> str:
    told = account.all
    rungs = ", ".join(f"{rung} {count}" for rung, count in sorted(told.recovered_by.items())) or "nothing"
    line = f"{side}: {told.completed} of {told.runs} completed, {told.kills} kills, {told.wall_seconds:.0f} s"
    return f"{line}; recovered by {rungs}; {told.tokens_counted:,} tokens counted by accounts of budgets"


def _plan(asked: argparse.Namespace) -> Plan:
    rolling = asked.kinds == ("worker-rolling",)
    runs = asked.runs or (Plan.runs if asked.minutes is None else _MANY)
    return Plan(
        runs=runs,
        at_once=asked.at_once or (Plan.runs if rolling else Plan.at_once),
        seed=asked.seed,
        kinds=asked.kinds,
        sessions=asked.sessions,
        budget=asked.budget,
        every_seconds=asked.every_seconds,
        step_seconds=asked.step_seconds or (ROLLING_STEP_SECONDS if rolling else Plan.step_seconds),
        partition_seconds=asked.partition_seconds,
        partitions=asked.partitions,
        minutes=asked.minutes,
        keep=asked.keep,
    )


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description="Kill at random, and see that nothing is lost.")
    parser.add_argument("--runs", type=int, help="work orders (20; with --minutes: as many as it takes)")
    parser.add_argument("--minutes", type=float, help="start no work order after so long")
    parser.add_argument("--at-once", type=int, help="work orders at once (default: 8; rolling: all)")
    parser.add_argument("--seed", type=int, default=7, help="of the hand that kills (default: 7)")
    parser.add_argument("--kinds", type=_kinds, default=USUAL, help=f"some of {','.join(KINDS)}")
    parser.add_argument("--every-seconds", type=float, default=1.5, help="between two kills, on average")
    parser.add_argument("--step-seconds", type=float, help="what an agent works in a step (5; rolling: 10)")
    parser.add_argument("--partition-seconds", type=float, default=35.0, help="how long a worker stands still")
    parser.add_argument("--partitions", type=int, default=2, help="the most in a trial")
    parser.add_argument("--budget", default=BUDGET, help="of each work order, such as 5ktok; raised when used up")
    parser.add_argument("--sessions", choices=get_args(Sessions), default=Plan.sessions, help="of each work order")
    parser.add_argument("--keep", action="store_true", help="leave the folder of the trial, to look at")
    parser.add_argument("--naive", action=argparse.BooleanOptionalAction, default=True, help="the baseline too")
    return parser.parse_args(argv)


def _kinds(text: str) -> tuple[Kind, ...]:
    asked = tuple(text.split(","))
    if unknown := sorted(set(asked) - set(KINDS)):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(KINDS)}")
    if "host" in asked and "checkpoint_remote" not in Settings.model_fields:
        raise argparse.ArgumentTypeError("host needs a checkpoint remote, which this version does not have")
    if "worker-rolling" in asked and len(asked) > 1:
        raise argparse.ArgumentTypeError("worker-rolling stands alone")
    return cast("tuple[Kind, ...]", asked)


if __name__ == "__main__":
    end_process(main())
