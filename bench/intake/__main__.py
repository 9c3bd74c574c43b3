"""`python -m bench.intake --deliveries 500 --seed 7`: a table, and `bench/results/intake.json`."""

import argparse
import asyncio
import sys
from dataclasses import asdict
from pathlib import Path

from bench.intake.trial import try_intake
from bench.report import RESULTS, write_figures


def main() -> int:
    """Run the trial; return 1 if a result is doubled or missing."""
    parser = argparse.ArgumentParser(description="Deliveries that come twice and out of order, under kills.")
    parser.add_argument("--deliveries", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kills", type=int, default=2, help="of the worker (default: 2)")
    parser.add_argument("--output", type=Path, default=RESULTS / "intake.json")
    options = parser.parse_args()
    outcome = asyncio.run(try_intake(options.deliveries, options.seed, options.kills))
    write_figures(options.output, asdict(outcome))
    for name, figure in asdict(outcome).items():
        print(f"{name:20} {figure}")
    return 0 if outcome.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
