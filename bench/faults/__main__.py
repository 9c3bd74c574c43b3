"""`python -m bench.faults --runs 1000 --seed 7`: a table, and `bench/results/faults.json`."""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from bench.faults.trial import commit, try_faults

RESULTS = Path(__file__).parents[1] / "results" / "faults.json"


def main() -> int:
    """Run it; return 1 where something went wrong."""
    parser = argparse.ArgumentParser(description="Whole work orders on forges that answer badly.")
    parser.add_argument("--runs", type=int, default=42)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    outcome = asyncio.run(try_faults(options.runs, options.seed))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"commit": commit(), **outcome.as_json()}, indent=1) + "\n")
    for name in ("seed", "runs", "unmet", "duplicates", "stuck", "lost", "paid_again", "naive"):
        print(f"{name:12} {getattr(outcome, name)}")
    for line in outcome.why:
        print(line)
    return 0 if outcome.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
