"""A runner of supervisors in its own process, with today's code or a copy of it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENDS_SECONDS = 30.0
_SEPTET = Path(sys.executable).with_name("septet")
_PACKAGES = ("septet", "activities", "workflows", "workers", "clients")


@dataclass
class Runner:
    state: Path
    packages: Path | None = None
    processes: "list[subprocess.Popen[str]]" = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.state / "runner"

    def start(self) -> "subprocess.Popen[str]":
        env = {"SEPTET_STATE_DIR": str(self.state), "HOME": str(self.state.parent), "PATH": os.environ["PATH"]}
        if self.packages is not None:
            env["PYTHONPATH"] = str(self.packages)
        process = subprocess.Popen([_SEPTET, "runner", "--json"], env=env, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        assert process.stdout is not None
        assert '"ready": true' in process.stdout.readline()
        return process

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate(timeout=ENDS_SECONDS)


def copy_packages(folder: Path) -> Path:
    for name in _PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder
