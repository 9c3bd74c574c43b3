"""Make `.venv` from the locked packages and install the project into it, as far as that is not done yet.

`scripts/setup` chooses the Python that runs this. The network is asked for the locked packages alone, and each of
them must have a hash of the lock. A stamp, written last, says what the environment was made from: one without it
was interrupted and is made anew. Two runs at once wait for each other.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "septet.stamp"
LOCK = ROOT / "requirements-dev.lock"
PROJECT = ROOT / "pyproject.toml"


def main() -> int:
    """Set up and return the exit code."""
    quiet = "--quiet" in sys.argv[1:]
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        wait_for_turn(folder)
        set_up(folder)
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
    """Lock the checkout's folder; programs that inherit the descriptor hold the lock too, until they end."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("septet setup: another set-up runs in this folder; waiting for it.", file=sys.stderr, flush=True)
        fcntl.flock(folder, fcntl.LOCK_EX)


def set_up(folder: int) -> None:
    """Make what the stamp does not name."""
    packages = digest(LOCK.read_bytes(), f"{sys.version_info[:2]} {ROOT}".encode())
    project = digest(PROJECT.read_bytes())
    done = STAMP.read_text(encoding="ascii").split() if STAMP.exists() and VENV_PYTHON.exists() else []
    if done == [packages, project]:
        return
    if done[:1] != [packages]:
        install_packages(folder)
    STAMP.unlink(missing_ok=True)
    install_project(folder)
    STAMP.write_text(f"{packages}\n{project}\n", encoding="ascii")


def install_packages(folder: int) -> None:
    """Make `.venv` anew with exactly the locked packages, wheels only: no compiler is needed."""
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"septet setup: making .venv with Python {version} from {LOCK.name}", file=sys.stderr, flush=True)
    if VENV.exists():
        shutil.rmtree(VENV)
    # Run from inside .venv, this is the Python that .venv was made with.
    run(folder, sys._base_executable, "-m", "venv", str(VENV))  # type: ignore[attr-defined]  # noqa: SLF001 -- it has no public name
    pip(folder, "--only-binary", ":all:", "--no-deps", "--require-hashes", "-r", str(LOCK))


def install_project(folder: int) -> None:
    """Install the checkout itself, editable, with what is there already."""
    # A path file, not a finder: it costs each start of Python nothing, and every agent run starts some.
    as_path = ("--config-settings", "editable_mode=compat")
    pip(folder, "--no-deps", "--no-build-isolation", "--no-index", *as_path, "-e", str(ROOT))


def pip(folder: int, *arguments: str) -> None:
    """Run the environment's own pip."""
    quietly = ("--quiet", "--disable-pip-version-check", "--no-input")
    run(folder, str(VENV_PYTHON), "-m", "pip", "install", *quietly, *arguments)


def run(folder: int, *argv: str) -> None:
    """Run a program to its end, with the lock."""
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, pass_fds=(folder,))


def digest(*parts: bytes) -> str:
    """Return one short name for all of `parts`."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
