"""The releases of a trial, each unpacked into a folder of its own."""

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
_BUILD = "from setuptools.build_meta import build_wheel; build_wheel('dist')"


@dataclass(frozen=True, slots=True)
class Release:
    """A release whose programs run."""

    name: str
    packages: Path
    """What `PYTHONPATH` names."""


def kept_releases() -> list[str]:
    """Return the versions of the releases whose wheels are kept, the oldest first."""
    versions = (wheel.name.split("-")[1] for wheel in KEPT.glob("septet-*.whl"))
    return sorted(versions, key=lambda version: [int(part) for part in version.split(".")])


def releases(names: Sequence[str], folder: Path) -> list[Release]:
    """Unpack kept releases by their versions, and this commit's under the name `today`."""
    return [_unpacked(name, folder) for name in names]


def _unpacked(name: str, folder: Path) -> Release:
    (wheel,) = [_built(folder / "build")] if name == TODAY else KEPT.glob(f"septet-{name}-*.whl")
    packages = folder / name
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(packages)
    return Release(name, packages)


def _built(folder: Path) -> Path:
    """Build the wheel of the working tree, from a copy: a build leaves folders behind."""
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
