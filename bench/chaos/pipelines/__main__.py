"""`python -m bench.chaos.pipelines [--runs 50] [--seed 1]`: a pipeline for each seed, and kills."""

import argparse
import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from bench.chaos.account import Account
from bench.chaos.pipelines.trial import USUAL, Tried, tried
from bench.machine import machine
from bench.report import RESULTS, write_figures
from septet.system.own_process import end_process

_TERMINATED = 143
"""The exit code after SIGTERM, 128 + 15, as in a shell."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trials, one after the other; the exit code is 1 if a law is broken."""
    asked = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that started processes are stopped
    on = machine()
    plan = replace(
        USUAL,
        runs=asked.issues,
        every_seconds=asked.every_seconds,
        step_seconds=asked.step_seconds,
        keep=asked.keep,
    )
    figures = []
    for seed in range(asked.seed, asked.seed + asked.runs):
        trial = asyncio.run(tried(replace(plan, seed=seed)))
        figures.append(_figures(trial))
        print(_line(trial), *(f"  {line}" for line in trial.broken), sep="\n", flush=True)
    failed = [trial["seed"] for trial in figures if trial["broken"]]
    kills = sum((Counter(trial["kills"]) for trial in figures), Counter[str]())
    print(f"{len(figures)} pipelines, {sum(kills.values())} kills ({_listed(kills)})")
    print(f"Broken with the seeds {', '.join(map(str, failed))}." if failed else "Every law holds.")
    path = RESULTS / f"chaos-pipeline-{asked.seed}.json"
    print(write_figures(path, {"plan": asdict(plan), "trials": figures}, on))
    return 1 if failed else 0


def _figures(trial: Tried) -> dict[str, Any]:
    told = Account(trial.seen).all
    return {
        **asdict(told),
        "executors": trial.executors,
        "looks": trial.looks,
        "kills": Counter(kill.kind for kill in trial.seen.kills),
        "broken": trial.broken,
    }


def _line(trial: Tried) -> str:
    told = Account(trial.seen).all
    return (
        f"seed {told.seed}, executors {trial.executors}: {told.completed} of {told.runs} issues, {told.kills}"
        f" kills ({_listed(Counter(kill.kind for kill in trial.seen.kills))}), {told.agent_steps} turns,"
        f" {told.agent_starts} starts, {trial.looks} looks, {told.wall_seconds:.0f} s"
    )


def _listed(kills: Counter[Any]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(kills.items())) or "none"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos-pipeline", description="Kill at random under pipelines.")
    parser.add_argument("--runs", type=int, default=1, help="pipelines, each with a seed of its own (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="of the first one (default: 1)")
    parser.add_argument("--issues", type=int, default=USUAL.runs, help="of each pipeline (default: 20)")
    parser.add_argument("--every-seconds", type=float, default=USUAL.every_seconds, help="between two kills")
    parser.add_argument("--step-seconds", type=float, default=USUAL.step_seconds, help="what a turn takes")
    parser.add_argument("--keep", action="store_true", help="leave the folders of the trials, to look at")
    return parser.parse_args(argv)


if __name__ == "__main__":
    end_process(main())
