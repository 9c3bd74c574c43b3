"""The contents of a wheel, from which the image is built."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "requirements.lock"
PACKAGES = ("septet", "activities", "workflows", "workers", "clients")
BUILD = "from setuptools import build_meta; print(build_meta.build_wheel('wheel'))"


LEFT_OUT = ("septet/docs/adr/", "septet/docs/pictures/")
"""The folders of the documentation that a wheel omits."""


def files_of(folder: Path) -> set[str]:
    return {
        str(file.relative_to(folder))
        for package in PACKAGES
        for file in (folder / package).rglob("*")
        if file.is_file()
        and "__pycache__" not in file.parts
        and not str(file.relative_to(folder)).startswith(LEFT_OUT)
    }


def copy_project(folder: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)


def build_wheel(folder: Path) -> Path:
    built = subprocess.run([sys.executable, "-c", BUILD], cwd=folder, capture_output=True, text=True, check=True)
    return folder / "wheel" / built.stdout.split()[-1]


def test_a_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    """A wheel has the modules, commands, scenarios, documentation and other data of the packages."""
    copy_project(tmp_path)
    wanted = files_of(tmp_path)
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        held = set(wheel.namelist())
    assert wanted - held == set()
    assert "septet/docs/operations/runbook.md" in held
    assert [name for name in held if name.startswith(LEFT_OUT)] == []


@pytest.mark.release
@pytest.mark.timeout(600)
def test_the_bill_of_a_wheel_names_each_locked_package_with_its_licence(tmp_path: Path) -> None:
    """The wheel's bill is CycloneDX and names each locked package of this machine with version and licence."""
    copy_project(tmp_path)
    file = tmp_path / "septet.cdx.json"
    subprocess.run([ROOT / "scripts/wheel-bom", build_wheel(tmp_path), file], check=True, timeout=580)
    bill = json.loads(file.read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "septet"
    pins = [Requirement(line.rstrip("\\ ")) for line in LOCK.read_text().splitlines() if line[:1].isalnum()]
    here = [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]
    components = {canonicalize_name(each["name"]): each for each in bill["components"]}
    assert {name: each["version"] for name, each in components.items()} == {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in here
    }
    assert [name for name, each in components.items() if not each.get("licenses")] == []
