"""Whole work orders on three forges that answer badly: no work order is doubled, stuck, lost or paid for again.

`make faults RUNS=1000 SEED=7` runs it; `docs/forges.md` describes its results and their limits.
"""

import sys

from bench.machine import ROOT

if (_TESTS := str(ROOT / "tests")) not in sys.path:
    sys.path.append(_TESTS)  # the forges are the tests' doubles
