"""What a wheel of the project holds: the image is made from it."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("septet", "activities", "workflows", "workers", "clients")
BUILD = "from setuptools import build_meta; print(build_meta.build_wheel('wheel'))"


LEFT_OUT = ("septet/docs/adr/", "septet/docs/pictures/")
"""Of the documentation."""


def files_of(folder: Path) -> set[str]:
    """Return the files of our packages in `folder`, without what Python left there, and what a wheel leaves out."""
    return {
        str(file.relative_to(folder))
        for package in PACKAGES
        for file in (folder / package).rglob("*")
        if file.is_file()
        and "__pycache__" not in file.parts
        and not str(file.relative_to(folder)).startswith(LEFT_OUT)
    }


def test_a_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    """Commands, scenarios, the pages of the documentation and other data go along with the modules."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    wanted = files_of(tmp_path)
    built = subprocess.run([sys.executable, "-c", BUILD], cwd=tmp_path, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(tmp_path / "wheel" / built.stdout.split()[-1]) as wheel:
        held = set(wheel.namelist())
    assert wanted - held == set()
    assert "septet/docs/operations/runbook.md" in held
    assert [name for name in held if name.startswith(LEFT_OUT)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_those_of_this_checkout(package: str) -> None:
    """Another distribution's `workflows` or `clients` does not stand in for ours."""
    module = __import__(package)
    assert Path(module.__path__[0]).resolve() == ROOT / package
