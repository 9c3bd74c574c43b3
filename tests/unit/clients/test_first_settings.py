"""The first settings file from a repository's files; its hosts come from lock files and from tools."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clients.disk.first_settings import FirstSettings, first_settings
from septet.contracts.names import SETTINGS_PATH
from septet.repository_file import load_repository_settings
from septet.repository_settings import RepositorySettings

_PACKAGE_LOCK = {"packages": {"node_modules/a": {"resolved": "https://npm.example:8443/a/-/a-1.0.0.tgz"}}}

_UV_LOCK = """
[[package]]
name = "a"
source = { registry = "https://index.example/simple" }
sdist = { url = "https://files.example/packages/a-1.0.0.tar.gz", hash = "sha256:0" }
"""
_HELP = "  -i, --index-url <url>  Base URL of the index (default\n                         https://default.example/simple). More.\n"


class Project:
    """A repository's files, and the tools on PATH."""

    def __init__(self, root: Path) -> None:
        """Make an empty repository without any tool."""
        self.folder, self.bin = root / "project", root / "bin"
        self.folder.mkdir()
        self.bin.mkdir()

    def write(self, files: dict[str, Any]) -> None:
        """Write files by their names."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8"
            )

    def tool(self, name: str, **answers: str) -> None:
        """Put a tool on PATH that prints an answer by its first arguments, and otherwise fails."""
        cases = "".join(f"'{words}'*) cat <<'END'\n{text}\nEND\n;;\n" for words, text in answers.items())
        program = self.bin / name
        program.write_text(f'#!/bin/sh\ncase "$*" in\n{cases}*) exit 1;;\nesac\n', encoding="utf-8")
        program.chmod(0o755)

    def look(self) -> FirstSettings:
        """Return the proposal for a first file."""
        return first_settings(self.folder, {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.folder.parent)})

    def settings(self) -> RepositorySettings:
        """Return the settings that the product reads from that file."""
        return load_repository_settings({SETTINGS_PATH: self.look().text().encode()}.get)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty repository."""
    return Project(tmp_path)


def test_a_package_of_node_is_installed_by_its_lock_file(project: Project) -> None:
    """The checks are the package's scripts, and the hosts come from npm's registry and the lock file."""
    scripts = {"test": "vitest run", "lint": "eslint .", "start": "node ."}
    project.write({"package.json": {"scripts": scripts}, "package-lock.json": _PACKAGE_LOCK})
    project.tool("npm", **{"config get registry": "https://registry.example/"})
    settings = project.settings()
    assert settings.setup == (("npm", "ci"),)
    assert settings.checks == (("npm", "run", "lint"), ("npm", "test"))
    assert project.look().hosts == ("npm.example:8443", "registry.example:443")
    assert project.look().notes == ()


def test_the_lock_file_shows_which_tool_installs(project: Project) -> None:
    """A placeholder that npm writes for a test is no check; a note names the command of a missing tool."""
    scripts = {"test": 'echo "Error: no test specified" && exit 1'}
    project.write({"package.json": {"scripts": scripts}, "pnpm-lock.yaml": "lockfileVersion: '9.0'\n"})
    found = project.look()
    assert (found.setup, found.checks) == ((("pnpm", "install", "--frozen-lockfile"),), ())
    assert (found.hosts, found.notes) == ((), ("Ask `pnpm config get registry` for the host of packages.",))


def test_a_python_project_gets_an_environment_of_its_own(project: Project) -> None:
    """The requirements decide whether pytest runs, and pip's settings name the index."""
    project.write({"requirements.txt": "flask\n", "requirements-dev.txt": "pytest\n", "tests/test_a.py": ""})
    project.tool("python3", **{"-m pip config list": "global.index-url='https://ada:secret@index.example/simple'"})
    settings = project.settings()
    install = (".venv/bin/python", "-m", "pip", "install", "-r", "requirements-dev.txt", "-r", "requirements.txt")
    assert settings.setup == (("python3", "-m", "venv", ".venv"), install)
    assert settings.checks == ((".venv/bin/python", "-m", "pytest"),)
    assert project.look().hosts == ("index.example:443",)


def test_without_an_index_in_pips_settings_the_default_in_its_help_counts(project: Project) -> None:
    """The host of pip's default index is found, and the tests' extra is installed with the project."""
    project.write(
        {"pyproject.toml": '[project]\ndependencies = ["a"]\n[project.optional-dependencies]\ndev = ["pytest"]\n'}
    )
    project.tool("python3", **{"-m pip config list": "", "-m pip install --help": _HELP})
    found = project.look()
    assert found.hosts == ("default.example:443",)
    assert found.setup[-1][-2:] == ("-e", ".[dev]")


def test_uv_has_all_hosts_in_its_lock_file(project: Project) -> None:
    """The lock file of uv names the index and the host of the files."""
    project.write({"pyproject.toml": "[dependency-groups]\ndev = ['pytest']\n", "uv.lock": _UV_LOCK})
    found = project.look()
    assert found.setup == (("uv", "sync", "--locked"),)
    assert found.checks == (("uv", "run", "--no-sync", "python", "-m", "pytest"),)
    assert found.hosts == ("files.example:443", "index.example:443")


@pytest.mark.parametrize(
    ("files", "check"),
    [
        ({"tests/test_a.py": "import unittest"}, "-m unittest discover -s tests"),
        ({"tests/test_a.py": "import unittest", "tests/__init__.py": ""}, "-m unittest discover"),
        ({"test_a.py": "import unittest"}, "-m unittest discover"),
        ({"test_a.py": "def test_a(): pass"}, "-m pytest"),
        ({"tests/test_a.py": "import unittest", "requirements.txt": "pytest"}, "-m pytest"),
    ],
)
def test_tests_are_found_without_a_file_that_declares_them(
    project: Project, files: dict[str, str], check: str
) -> None:
    """A test file is found by its name; a folder without `__init__.py` is named in the command."""
    project.write(files)
    ((_, *words),) = project.settings().checks
    assert " ".join(words) == check


def test_a_crate_is_fetched_into_the_workspace(project: Project) -> None:
    """Cargo's home lies in the workspace, because a guest's home is removed; a note helps without a registry."""
    project.write({"Cargo.toml": "[package]\n", "Cargo.lock": "version = 4\n"})
    found = project.look()
    assert found.setup == (("env", "CARGO_HOME=target/cargo-home", "cargo", "fetch", "--locked"),)
    assert "--offline" in found.checks[0]
    assert "cargo fetch -vv" in found.notes[0]
    project.write({".cargo/config.toml": '[source.mirror]\nregistry = "sparse+https://crates.example/index/"\n'})
    assert project.look().hosts == ("crates.example:443",)


def test_other_repositories_have_the_checks_of_their_makefile(project: Project) -> None:
    """The targets lint, check and test of the Makefile are the checks, and a variable is no target."""
    project.write({"Makefile": "test := x\nlint:\n\tcheck it\ncheck: lint\n"})
    assert project.look().checks == (("make", "lint"), ("make", "check"))


def test_a_repository_of_which_nothing_is_known_gets_a_file_to_fill(project: Project) -> None:
    """A repository without known files gets a valid file without commands."""
    settings = project.settings()
    assert (settings.setup, settings.checks) == ((), ())


def test_a_repository_has_the_tools_that_are_asked_run_nothing(tmp_path: Path) -> None:
    """A tool runs outside the repository, so that `python -m pip` does not run the repository's `pip.py`."""
    (tmp_path / "requirements.txt").write_text("pytest\n")
    (tmp_path / "pip.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    first_settings(tmp_path, os.environ)
    assert not (tmp_path / "ran").exists()
