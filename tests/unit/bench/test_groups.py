"""Each group of figures can be asked for."""

import os
import subprocess
import sys

from bench.__main__ import GROUPS, LONG
from bench.machine import ROOT


def test_every_group_is_found_without_the_tests() -> None:
    """`make bench` has nothing of the tests on its path: their programs are for processes that a group starts."""
    program = f"import importlib\nfor group in {(*GROUPS, *LONG)}:\n    importlib.import_module(f'bench.{{group}}').measure"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
