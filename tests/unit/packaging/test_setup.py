"""`scripts/setup`: its choice of Python, its messages, and its behaviour after a kill or a second start."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.shell_programs import write_program

ROOT = Path(__file__).parents[3]
TIMEOUT_SECONDS = 240
pytestmark = pytest.mark.timeout(600)  # the machine's disk is slow at times

WHEEL = """Wheel-Version: 1.0
Generator: test
Root-Is-Purelib: true
Tag: py3-none-any
"""
METADATA = """Metadata-Version: 2.1
Name: {name}
Version: 1.0
"""
# A build backend in one function: an editable install is a wheel that contains a path file.
BACKEND = """
import zipfile
from pathlib import Path

def build_editable(directory, config_settings=None, metadata_directory=None):
    name = "sample-1.0-py3-none-any.whl"
    with zipfile.ZipFile(Path(directory) / name, "w") as wheel:
        wheel.writestr("sample.pth", str(Path.cwd()))
        for file, text in {files!r}.items():
            wheel.writestr(f"sample-1.0.dist-info/{{file}}", text)
        wheel.writestr("sample-1.0.dist-info/RECORD", "")
    return name
"""
PROJECT = """[build-system]
requires = ["backend"]
build-backend = "backend"
[project]
name = "sample"
version = "1.0"
"""


@dataclass(frozen=True)
class Checkout:
    """A checkout with the real scripts, a project of one package, and a folder of wheels instead of an index."""

    root: Path
    programs: Path
    """The folder that PATH has before the system's own programs."""

    def __post_init__(self) -> None:
        """Make the checkout with a build backend and a tool in its lock."""
        (self.root / "scripts").mkdir(parents=True)
        self.programs.mkdir()
        for name in ("setup", "build_venv.py"):
            shutil.copy(ROOT / "scripts" / name, self.root / "scripts")
        files = {"METADATA": METADATA.format(name="sample"), "WHEEL": WHEEL}
        self.lock(backend=self.wheel("backend", BACKEND.format(files=files)), tool=self.wheel("tool", ""))
        (self.root / "requirements.lock").touch()
        (self.root / "requirements-build.lock").write_text("backend==1.0 --hash=sha256:0\n", encoding="utf-8")
        (self.root / "pyproject.toml").write_text(PROJECT, encoding="utf-8")

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    def wheel(self, name: str, module: str) -> str:
        wheel = self.root.parent / "wheels" / f"{name}-1.0-py3-none-any.whl"
        wheel.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{name}.py", module)
            archive.writestr(f"{name}-1.0.dist-info/METADATA", METADATA.format(name=name))
            archive.writestr(f"{name}-1.0.dist-info/WHEEL", WHEEL)
            archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
        return hashlib.sha256(wheel.read_bytes()).hexdigest()

    def lock(self, **sha256s: str) -> None:
        lines = "".join(f"{name}==1.0 \\\n    --hash=sha256:{sha256}\n" for name, sha256 in sha256s.items())
        (self.root / "requirements-dev.lock").write_text(lines, encoding="utf-8")

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        env = {
            "PATH": f"{self.programs}:{os.defpath}",
            "HOME": str(self.root.parent),
            "PYTHON": sys.executable,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.root.parent / "wheels"),
            "PIP_CONFIG_FILE": os.devnull,
        }
        return subprocess.Popen(
            [self.root / "scripts" / "setup", *arguments],
            env={name: value for name, value in (env | variables).items() if value},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def set_up(self, *arguments: str, **variables: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **variables)
        stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
        return process.returncode, stdout, stderr

    def program(self, name: str, script: str) -> None:
        write_program(self.programs / name, f"#!/bin/sh\n{script}\n")

    def imports(self, module: str) -> bool:
        python = self.venv / "bin" / "python"
        return (
            subprocess.run([python, "-c", f"import {module}"], check=False, stderr=subprocess.DEVNULL).returncode
            == 0
        )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout", tmp_path / "programs")


@pytest.mark.long
@pytest.mark.release
def test_what_septet_runs_with_comes_first_and_the_rest_when_it_is_wanted(checkout: Checkout) -> None:
    """`--run-only` installs no tools for development, a later set-up adds them, and neither is installed twice."""
    assert checkout.set_up("--quiet", "--run-only")[0] == 0
    assert (checkout.imports("backend"), checkout.imports("tool")) == (True, False)
    assert checkout.set_up("--quiet", "--run-only") == (0, "", "")
    kept = checkout.venv / "kept"
    kept.touch()
    assert checkout.set_up()[0] == 0
    assert (checkout.imports("tool"), kept.exists()) == (True, True)
    assert checkout.set_up("--quiet", "--run-only") == (0, "", "")


@pytest.mark.release
@pytest.mark.long
def test_one_environment_is_made_whatever_came_before(checkout: Checkout) -> None:
    """A killed set-up is repaired, a second one waits for the first, and only what has changed is done again."""
    killed = checkout.start()
    assert killed.stderr is not None
    assert "making .venv" in killed.stderr.readline()
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    checkout.venv.mkdir(exist_ok=True)
    (checkout.venv / "half-made").touch()

    first = checkout.start()
    assert first.stderr is not None
    assert "making .venv" in first.stderr.readline()
    code, stdout, stderr = checkout.set_up()
    assert (code, "making" in stderr, "waiting" in stderr) == (0, False, True)
    assert stdout.splitlines()[-1] == f". {checkout.venv}/bin/activate"
    first.communicate(timeout=TIMEOUT_SECONDS)
    assert first.returncode == 0
    assert checkout.imports("backend")
    assert not (checkout.venv / "half-made").exists()

    stamp = (checkout.venv / "septet.stamp").stat()
    assert checkout.set_up("--quiet") == (0, "", "")
    assert (checkout.venv / "septet.stamp").stat() == stamp

    kept = checkout.venv / "kept"
    kept.touch()
    with (checkout.root / "pyproject.toml").open("a", encoding="utf-8") as project:
        project.write("# changed\n")
    assert checkout.set_up()[0] == 0
    assert kept.exists()

    checkout.lock(backend="0" * 64)
    code, _, stderr = checkout.set_up()
    assert (code, "DO NOT MATCH" in stderr, "begins anew" in stderr) == (1, True, True)
    assert not kept.exists()
    assert not (checkout.venv / "septet.stamp").exists()


NO_VENV = 'case "$2" in *ensurepip*) exit 1 ;; *) echo 3.12 ;; esac'


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 3.9", ("python3.12 is 3.9", "3.11", "apt-get install python3 python3-venv")),
        (NO_VENV, ("apt-get install python3.12-venv",)),
    ],
    ids=["old", "no venv"],
)
def test_a_python_that_cannot_do_it_is_named_with_the_remedy(
    checkout: Checkout, script: str, words: tuple[str, ...]
) -> None:
    """The error for an old Python, or for one without `venv`, names it and the packages to install."""
    checkout.program("python3.12", script)
    code, _, stderr = checkout.set_up(PYTHON="python3.12")
    assert (code, [each for each in words if each not in stderr]) == (1, [])


def test_a_python_that_can_do_it_is_preferred(checkout: Checkout) -> None:
    """Without `PYTHON` the set-up prefers a Python that is new enough and has `venv`."""
    checkout.program("python3", "echo 3.9")
    checkout.program("python3.14", "echo 3.14; exit 1")
    checkout.program("python3.13", 'case "$2" in *ensurepip*) exit 1 ;; *) echo 3.13 ;; esac')
    checkout.program("python3.12", "echo 3.12")
    assert checkout.set_up("--python", PYTHON="") == (0, "python3.12\n", "")


def test_a_missing_git_is_named(checkout: Checkout) -> None:
    """Without git the set-up stops, and its message names the package."""
    for name in ("dirname", "uname"):
        (checkout.programs / name).symlink_to(str(shutil.which(name)))
    (checkout.programs / "sh").symlink_to("/bin/sh")
    code, _, stderr = checkout.set_up(PATH=str(checkout.programs))
    assert code == 1
    assert "apt-get install git" in stderr


def test_windows_gets_one_clear_sentence(checkout: Checkout) -> None:
    """In a shell of Windows the set-up stops with one sentence that names WSL 2."""
    checkout.program("uname", "echo MINGW64_NT-10.0")
    code, stdout, stderr = checkout.set_up()
    assert (code, stdout, stderr.count("\n")) == (1, "", 1)
    assert "WSL 2" in stderr
