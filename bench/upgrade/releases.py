"""The releases of a trial, each in its own folder with its own packages."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.machine import ROOT

KEPT = ROOT / "tests" / "data" / "releases"
TODAY = "today"
_SOURCES = ("septet", "activities", "workflows", "workers", "clients", "pyproject.toml", "README.md", "LICENSE")
_INSTALL = (
    sys.executable,
    *["-m", "pip", "install", "-q", "--require-hashes", "--no-deps", "--only-binary=:all:"],
)
_BUILD = "from setuptools.build_meta import build_wheel; build_wheel('dist')"


@dataclass(frozen=True, slots=True)
class Release:
    """An installed release."""

    name: str
    packages: Path
    """The folder for `PYTHONPATH`."""


def kept_releases() -> list[str]:
    """Return the versions of the kept wheels, oldest first."""
    versions = (wheel.name.split("-")[1] for wheel in KEPT.glob("septet-*.whl"))
    return sorted(versions, key=lambda version: [int(part) for part in version.split(".")])


def releases(names: Sequence[str], folder: Path) -> list[Release]:
    """Install kept releases by their versions, and this commit's release by the name `today`."""
    return [_installed(name, folder) for name in names]


def _installed(name: str, folder: Path) -> Release:
    """Install a release; this commit's release uses the packages of the trial's environment."""
    packages = folder / name
    if name == TODAY:
        wheel = _built(folder / "build")
    else:
        (wheel,) = KEPT.glob(f"septet-{name}-*.whl")
        lock = KEPT / f"septet-{name}.lock"
        subprocess.run([*_INSTALL, "--target", packages, "--requirement", lock], check=True)
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(packages)
    return Release(name, packages)


def _built(folder: Path) -> Path:
    """Build the wheel of the working tree from a copy, for a build leaves folders behind."""
    for name in _SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name)
    subprocess.run([sys.executable, "-c", _BUILD], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel
