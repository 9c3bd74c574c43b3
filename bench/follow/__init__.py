"""Pull requests that agents follow, with failing checks, reviews, conflicts, people's pushes, and killed workers.

`make follow RUNS=30 SEED=7` runs it; `docs/follow.md` describes its results and their limits.
"""

import sys

from bench.machine import ROOT

if (_TESTS := str(ROOT / "tests")) not in sys.path:
    sys.path.append(_TESTS)  # the forges are the tests' doubles
