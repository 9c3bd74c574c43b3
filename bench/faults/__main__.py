"""`python -m bench.faults --runs 1000 --seed 7`: a table, and `bench/results/faults.json`."""

import argparse
import asyncio
import sys
from pathlib import Path

from bench.faults.trial import try_faults
from bench.report import RESULTS, write_figures


def main() -> int:
    """Run the trial; return 1 after a failure."""
    parser = argparse.ArgumentParser(description="Whole work orders on forges that answer badly.")
    parser.add_argument("--runs", type=int, default=42)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", type=Path, default=RESULTS / "faults.json")
    options = parser.parse_args()
    outcome = asyncio.run(try_faults(options.runs, options.seed))
    write_figures(options.output, outcome.as_json())
    for name in ("seed", "runs", "unmet", "duplicates", "stuck", "lost", "paid_again", "naive"):
        print(f"{name:12} {getattr(outcome, name)}")
    for line in outcome.why:
        print(line)
    return 0 if outcome.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
