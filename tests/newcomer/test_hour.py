"""The rest of a new user's hour: a fresh clone and its demo."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.repositories import git

pytestmark = [pytest.mark.newcomer, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


def test_a_fresh_clone_runs_the_demo(tmp_path: Path) -> None:
    """`git clone` into an empty folder and `make demo` give seven steps and a command that can be pasted."""
    clone = tmp_path / "septet"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    env = {**os.environ, "HOME": str(tmp_path / "home"), "PYTHON": sys.executable}
    for name in ("VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL"):  # the clone's `make` must not see the tests' `make`
        env.pop(name, None)
    demo = subprocess.run(["make", "demo"], cwd=clone, env=env, capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stderr[-2000:]
    steps = [line.split()[1] for line in demo.stdout.splitlines() if line.startswith("✓")]
    assert (len(steps), steps[-1]) == (7, "create_pull_request")
    *_, command = demo.stdout.strip().splitlines()
    program = command.split()[1]
    assert command.startswith(f"SEPTET_STATE_DIR={tmp_path}")
    assert shutil.which(program, path=env["PATH"]) or Path(program).is_file()
    assert git(clone, "status", "--porcelain") == ""
