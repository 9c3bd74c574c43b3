"""The lock files: complete, with hashes, and without addresses."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock", "requirements-release.lock")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def entries(name: str) -> dict[str, tuple[Requirement, frozenset[str]]]:
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, tuple[Requirement, frozenset[str]]] = {}
    for line in text.splitlines():
        head, *hashes = re.split(r"\s+(?=--hash)", line.strip())
        requirement = Requirement(head)
        found[canonicalize_name(requirement.name)] = (requirement, frozenset(hashes))
    return found


def version_of(requirement: Requirement) -> str:
    (pin,) = requirement.specifier
    assert pin.operator == "=="
    return pin.version


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_pinned_with_hashes(name: str) -> None:
    """Each line of a lock is one exact version with at least one SHA-256."""
    pinned = entries(name)
    assert pinned
    for requirement, hashes in pinned.values():
        assert version_of(requirement)
        assert hashes
        assert all(HASH.fullmatch(each) for each in hashes)


@pytest.mark.parametrize("name", LOCKS)
def test_no_address_stands_in_a_lock(name: str) -> None:
    """A lock file names no address: the machine decides where packages come from."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text
    assert not any(requirement.url for requirement, _ in entries(name).values())


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("requirements.lock", PROJECT["project"]["dependencies"]),
        ("requirements-dev.lock", PROJECT["project"]["optional-dependencies"]["dev"]),
        ("requirements.lock", PROJECT["project"]["optional-dependencies"]["otel"]),
        ("requirements-dev.lock", PROJECT["project"]["optional-dependencies"]["server"]),
        ("requirements-build.lock", PROJECT["build-system"]["requires"]),
    ],
    ids=["run", "dev-extra", "otel-extra", "server-extra", "build"],
)
def test_the_lock_fits_the_project(name: str, wanted: list[str]) -> None:
    """Every dependency of pyproject.toml is locked in a version that it allows."""
    pinned = entries(name)
    for each in map(Requirement, wanted):
        locked, _ = pinned[canonicalize_name(each.name)]
        assert each.specifier.contains(version_of(locked)), each


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-build.lock"])
def test_the_smaller_locks_are_parts_of_the_whole(name: str) -> None:
    """The image's locks have the versions, markers and hashes of the lock for tests."""
    whole = entries("requirements-dev.lock")
    for package, (requirement, hashes) in entries(name).items():
        assert (str(requirement), hashes) == (str(whole[package][0]), whole[package][1])


def test_the_lock_is_complete_and_is_what_these_tests_run_with() -> None:
    """Every locked package and all its requirements are installed as locked, so `--no-deps` is safe."""
    pinned = entries("requirements-dev.lock")
    for package, (requirement, _) in pinned.items():
        if requirement.marker and not requirement.marker.evaluate():
            continue
        assert metadata.version(package) == version_of(requirement)
        for each in map(Requirement, metadata.requires(package) or ()):
            if each.marker is None or each.marker.evaluate({"extra": ""}):
                assert canonicalize_name(each.name) in pinned, f"{package} needs {each}"
                assert each.specifier.contains(version_of(pinned[canonicalize_name(each.name)][0]))
