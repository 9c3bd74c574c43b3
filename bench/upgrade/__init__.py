"""The upgrade trial: kept releases and this commit as workers of one server, with running work at every step."""

import sys

from bench.machine import ROOT

if (_TESTS := str(ROOT / "tests")) not in sys.path:
    sys.path.append(_TESTS)  # the trial uses the tests' commands and repositories
