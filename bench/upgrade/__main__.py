"""`make upgrade-trial`: go through an upgrade with work under way, print the tables, and say what is broken."""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.upgrade.account import Account, account_of, tables
from bench.upgrade.acts import Trial, laid_out
from bench.upgrade.releases import TODAY, kept_releases
from bench.upgrade.work import StandstillError
from septet.system.own_process import end_process

_TERMINATED = 143
"""The exit code after SIGTERM, 128 + 15, as in a shell."""
_FILE_COLUMNS = 140
"""The tables' width without a terminal."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trial; the exit code is 1 if work stands still, is lost, or is paid twice."""
    asked = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that started processes are stopped
    with tempfile.TemporaryDirectory(prefix="septet-upgrade-", ignore_cleanup_errors=True) as folder:
        trial, account = asyncio.run(_tried(Path(folder), asked))
    console = Console()
    if not console.is_terminal:
        console.width = _FILE_COLUMNS
    for table in tables(trial, account):
        console.print(table)
    console.print(f"Going back: {trial.rolled_back}", markup=False)
    broken = [*trial.broken, *account.broken]
    for line in broken:
        console.print(line, style="red", markup=False)
    console.print("Broken." if broken else "Nothing is stuck, nothing is lost, each step is paid once.")
    return 1 if broken else 0


async def _tried(folder: Path, asked: argparse.Namespace) -> tuple[Trial, Account]:
    async with laid_out(folder, [*asked.releases, TODAY], asked.orders) as trial:
        trial.work.patience_seconds = asked.patience
        try:
            await trial.carry_out()
        except StandstillError as error:
            trial.broken.append(str(error))
        return trial, await account_of(trial)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="upgrade-trial", description="Upgrade with work under way.")
    parser.add_argument("--orders", type=int, default=30, help="that begin in each act (default: 30)")
    parser.add_argument(
        "--releases",
        type=lambda text: text.split(","),
        default=kept_releases(),
        help="kept releases (default: all)",
    )
    parser.add_argument("--patience", type=float, default=600.0, help="seconds to wait for one thing")
    return parser.parse_args(argv)


if __name__ == "__main__":
    end_process(main())
