"""Septet without a clone, as by `pipx install` and `uvx --from`: from the wheel and from the source archive."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pydantic
import pytest
from fakes.septet_command import PROGRAMS

pytestmark = [pytest.mark.faces, pytest.mark.long]

ROOT = Path(__file__).parents[2]
PACKAGES = ("septet", "activities", "workflows", "workers", "clients")
DEPENDENCIES = Path(pydantic.__file__).parents[1]
"""The folder of Septet's dependencies, so that the test queries no index."""
BUILDS = {"wheel": "build_wheel", "sdist": "build_sdist"}
WITHIN_SECONDS = 90


def build(kind: str, folder: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    script = f"from setuptools import build_meta; print(build_meta.{BUILDS[kind]}('out'))"
    built = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    return folder / "out" / built.stdout.split()[-1]


def install(archive: Path, folder: Path) -> Path:
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    where = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())
    (packages / "dependencies.pth").write_text(f"{DEPENDENCIES}\n", encoding="utf-8")
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--disable-pip-version-check")
    install_it = [sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(archive)]
    done = subprocess.run(install_it, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "bin" / "septet"


@pytest.mark.parametrize("kind", ["wheel", pytest.param("sdist", marks=pytest.mark.release)])
def test_the_demo_runs_from_what_is_installed(kind: str, tmp_path: Path) -> None:
    """Outside a clone, `septet demo` takes its issue to a pull request with the installed files alone.

    `septet docs` shows a page from them too.
    """
    (tmp_path / "source").mkdir()
    septet = install(build(kind, tmp_path / "source"), tmp_path / "environment")
    (tmp_path / "elsewhere").mkdir()
    home = tmp_path / "home"
    home.mkdir()
    env = {
        "PATH": f"{septet.parent}:{PROGRAMS}:{os.environ['PATH']}",
        "HOME": str(home),
        "SEPTET_STATE_DIR": str(tmp_path / "state"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    ended = subprocess.run(
        [septet, "demo", "--sandbox", "none", "--json"],
        env=env,
        cwd=tmp_path / "elsewhere",
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    page = subprocess.run(
        [septet, "docs", "commands"], env=env, cwd=home, capture_output=True, text=True, check=True
    )
    assert page.stdout == (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    task = json.loads(ended.stdout)["task"]
    assert task["status"] == "completed"
    look = [str(tmp_path / "environment" / "bin" / "python"), "-c", "import clients; print(clients.__path__[0])"]
    module = subprocess.run(look, cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=True)
    assert Path(module.stdout.strip()).is_relative_to(tmp_path / "environment")
