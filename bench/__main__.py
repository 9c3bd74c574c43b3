"""`python -m bench [--only gap,stream] [--quick] [--seed N]`: measure, print the table, write the JSON."""

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence

from rich.console import Console

from bench.figure import Figure
from bench.machine import machine, version
from bench.pace import Pace
from bench.report import report, write_report
from bench.table import table
from septet.system.own_process import end_process

GROUPS = (
    "start", "hands", "idle", "ladder", "stream", "snapshot", "gap", "turn", "warm", "sessions", "pipeline",
    "server", "board", "page", "outage", "hops", "actions", "sealing",
)  # fmt: skip
"""One module each, with a function `measure`."""
LONG = ("thousand", "many", "crowd", "busy", "parked", "growth", "finishing")
"""The groups that are measured only if they are named."""
_TERMINATED = 143
"""The exit code after SIGTERM, 128 + 15, as in a shell."""
_FILE_COLUMNS = 160
"""The table's width without a terminal."""


def main() -> int:
    """Measure the requested groups; the exit code is 1 if a figure misses its target."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that started processes are stopped
    pace = Pace(quick=asked.quick, seed=asked.seed, issues=asked.issues)
    on, of = machine(), version()
    console = Console()
    if not console.is_terminal:
        console.width = _FILE_COLUMNS
    figures: dict[str, Sequence[Figure]] = {}
    for group in asked.only:
        with console.status(f"Measuring: {group}"):
            figures[group] = importlib.import_module(f"bench.{group}").measure(pace)
    where = f"{on.cores} cores of {on.cpu}, kernel {on.kernel}, Python {on.python}, load {on.load_before}"
    console.print(table(figures, f"Septet {of}: {where}"))
    print(write_report(report(figures, on, of, seed=pace.seed, quick=pace.quick)))
    return 1 if any(figure.passed is False for lines in figures.values() for figure in lines) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measure what the project promises in figures.")
    parser.add_argument("--only", type=_groups, default=GROUPS, help=f"some of {','.join((*GROUPS, *LONG))}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: for a first look")
    parser.add_argument("--seed", type=int, default=7, help="for what is generated (default: 7)")
    parser.add_argument("--issues", type=int, help="for the groups thousand and parked: how many")
    return parser.parse_args()


def _groups(text: str) -> tuple[str, ...]:
    asked = tuple(text.split(","))
    if unknown := sorted(set(asked) - set(GROUPS) - set(LONG)):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join((*GROUPS, *LONG))}")
    return asked


if __name__ == "__main__":
    end_process(main())
