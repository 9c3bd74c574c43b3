"""Issues and comments that come by webhooks and schedules, twice and out of order, while workers are killed.

`make intake-trial RUNS=500 SEED=7` runs it; `docs/intake.md` describes its results.
"""

import sys

from bench.machine import ROOT

if (_TESTS := str(ROOT / "tests")) not in sys.path:
    sys.path.append(_TESTS)  # the forges are the tests' doubles
