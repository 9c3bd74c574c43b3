"""The machine and the version of a measurement, without which a figure has no meaning."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil

from septet.system import processes

ROOT = Path(__file__).parents[1]
"""The repository."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of the figures."""

    name: str
    cpu: str
    cores: int
    memory_gib: float
    kernel: str
    python: str
    load_before: float
    """The load of the last minute before the measuring: above 0.5 other programs were at work."""


def machine() -> Machine:
    """Return this machine."""
    return Machine(
        name=platform.node() or "unnamed",
        cpu=_cpu_model(),
        cores=os.cpu_count() or 1,
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        kernel=platform.release(),
        python=platform.python_version(),
        load_before=round(os.getloadavg()[0], 2),
    )


def version() -> str:
    """Return Septet's version and the measured commit; `+` marks changed files."""
    from importlib.metadata import version as installed

    sha, changed = _git("rev-parse", "--short=12", "HEAD"), _git("status", "--porcelain")
    return f"{installed('septet')} {sha or 'unknown'}{'+' if changed else ''}"


def _git(*args: str) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    done = processes.run(["git", "-C", str(ROOT), *args], env=environ)
    return done.stdout.decode(errors="replace").strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
