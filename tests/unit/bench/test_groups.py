"""The groups of figures that `make bench` measures."""

import os
import subprocess
import sys

from bench.__main__ import GROUPS, LONG
from bench.machine import ROOT


def test_every_group_is_found_without_the_tests() -> None:
    """Each group is imported without the tests on the path, because `make bench` has no tests there."""
    program = f"import importlib\nfor group in {(*GROUPS, *LONG)}:\n    importlib.import_module(f'bench.{{group}}').measure"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
