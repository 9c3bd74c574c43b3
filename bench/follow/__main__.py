"""`python -m bench.follow --runs 30 --seed 7`: a table, and `bench/results/follow.json`."""

import argparse
import asyncio
import sys
from pathlib import Path

from bench.follow.trial import follow
from bench.report import RESULTS, write_figures


def main() -> int:
    """Run the trial; return 1 after a failure."""
    parser = argparse.ArgumentParser(description="Pull requests that agents follow.")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kills", type=int, help="of the worker at most (without it: as many as the time allows)")
    parser.add_argument("--output", type=Path, default=RESULTS / "follow.json")
    options = parser.parse_args()
    outcome = asyncio.run(follow(options.runs, options.seed, most_kills=options.kills))
    write_figures(options.output, outcome.as_json())
    for name, value in outcome.as_json().items():
        if name != "why":
            print(f"{name:15} {value}")
    for line in outcome.why:
        print(line)
    return 0 if outcome.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
