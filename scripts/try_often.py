"""`make flaky TESTS="…"`: run the named tests many times, and count the failures and their seeds.

It runs one more process than there are cores, because races show on a busy machine. The arguments are pytest's.
It ends early if no test has the given name.
"""

import argparse
import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_RUN_SECONDS = 900
_RAN = (0, 1)
"""The exit codes of a pytest that ran its tests: all passed, or some failed."""


@dataclass(frozen=True)
class Run:
    """One run of the tests, and what pytest printed."""

    seed: int
    code: int
    output: str

    def tests(self, *outcomes: str) -> set[str]:
        """Return the tests with one of these outcomes in pytest's short summary."""
        lines = (line.partition(" ") for line in self.output.splitlines())
        return {rest.partition(" - ")[0] for outcome, _, rest in lines if outcome in outcomes}


def main(argv: Sequence[str]) -> int:
    """Print the first failure in full, a row for each test, and a closing line; return 1 after a failure."""
    parser = argparse.ArgumentParser(prog="make flaky", description="Run tests many times.")
    parser.add_argument("--runs", type=int, default=30)
    count, tests = parser.parse_known_args(argv)
    if not tests:
        parser.error('name tests: make flaky TESTS="tests/workflows/test_board.py -k seat"')
    seeds = random.SystemRandom().sample(range(1 << 32), count.runs)
    with ThreadPoolExecutor(1 + (os.cpu_count() or 1)) as pool:
        asked = [pool.submit(run_with, seed, tests) for seed in seeds]
        try:
            runs = [run.result() for run in asked]
        finally:
            pool.shutdown(cancel_futures=True)
    failed = [run for run in runs if run.code != 0]
    if failed:
        print(failed[0].output)
    print_table(runs)
    print(f"{len(runs)} runs: {len(runs) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def run_with(seed: int, tests: Sequence[str]) -> Run:
    """Run the tests with a seed.

    Raises:
        SystemExit: pytest ran no test.
    """
    quiet = ("-qq", "-rpfE", "-p", "no:cacheprovider", f"--randomly-seed={seed}")
    argv = [sys.executable, "-m", "pytest", *quiet, *tests]
    try:
        ended = subprocess.run(argv, cwd=_ROOT, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Run(seed, 1, f"It did not end within {_RUN_SECONDS} s.")
    if ended.returncode not in _RAN:
        sys.exit(ended.stdout + ended.stderr)
    return Run(seed, ended.returncode, ended.stdout)


def print_table(runs: Sequence[Run]) -> None:
    """Print the passes and failures of each test, and the seeds of its failures."""
    passes: dict[str, int] = defaultdict(int)
    seeds: dict[str, list[int]] = defaultdict(list)
    for run in runs:
        lost = run.tests("FAILED", "ERROR")
        for test in run.tests("PASSED") - lost:
            passes[test] += 1
        for test in lost:
            seeds[test].append(run.seed)
    print("passed  failed  test")
    for test in sorted(passes.keys() | seeds.keys()):
        with_seeds = f" (seeds {', '.join(map(str, seeds[test]))})" if seeds[test] else ""
        print(f"{passes[test]:6}  {len(seeds[test]):6}  {test}{with_seeds}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
