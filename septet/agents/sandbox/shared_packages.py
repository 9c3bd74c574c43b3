"""What a CLI unpacks and compiles of itself as it starts first: once for all work orders, to be read."""

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from septet.agents.clis.adapter import FOR_EVERY_AGENT, Adapter, Machine, find_program, select_variables
from septet.agents.clis.own_files import locate, own_packages
from septet.agents.guest.description import GuestFiles, guest_environment
from septet.agents.guest.placements import OwnFolder
from septet.agents.sandbox.sandbox import Sandbox
from septet.system.locks import hold_lock

_START_SECONDS: Final = 120.0
_VERSIONS_KEPT: Final = 2
"""Agents of the version before may still run."""


@dataclass(frozen=True, slots=True)
class _FirstStart:
    """A start of a CLI that fills a folder, in a sandbox with nothing but that."""

    folder: Path
    """Where what comes of it is kept."""
    place: Path
    """Where the CLI writes it, and guests read it."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    packages: tuple[Path, ...] = ()
    """The user's own, that it reads."""
    home_folders: tuple[OwnFolder, ...] = ()
    """Others that it reads."""


def shared_packages(root: Path, adapter: Adapter, machine: Machine, sandbox: Sandbox) -> tuple[OwnFolder, ...]:
    """Return where guests see what a CLI has unpacked and compiled; nothing of what it does not, or the user has.

    The first time the CLI prints its version or help, in a sandbox with nothing but the folder that it fills:
    no agent has ever written there, and so none leaves code for another.

    Args:
        root: `STATE/packages`.
        adapter: The CLI.
        machine: Where it is.
        sandbox: What confines it.

    Raises:
        AgentMissingError: The program was not found.
        OSError: The disk refused.
    """
    unpacks, compiled = adapter.capabilities.unpacks, adapter.capabilities.compiled
    if not unpacks and compiled is None:
        return ()
    program = Path(find_program(adapter.name, adapter.program, machine))
    version = _version_of(program)
    env = guest_environment(select_variables(machine.env, FOR_EVERY_AGENT))
    users = own_packages(adapter, machine)
    shared: tuple[OwnFolder, ...] = ()
    if unpacks and not users:
        place = locate(adapter, machine, unpacks)
        folder = root / adapter.name / version
        shared = _fill_once(_FirstStart(folder, place, (str(program), "--version"), env), sandbox)
    if compiled is not None:
        place = locate(adapter, machine, compiled.place)
        folder = root / f"{adapter.name}-compiled" / version
        env = {**env, compiled.variable: str(place)}
        start = _FirstStart(folder, place, (str(program), *compiled.words), env, users, shared)
        shared = (*shared, *_fill_once(start, sandbox))
    return shared


def _version_of(program: Path) -> str:
    """Return a name for the program as it is now."""
    status = program.stat()
    words = f"{program.resolve()}\0{status.st_size}\0{status.st_mtime_ns}"
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def _fill_once(start: _FirstStart, sandbox: Sandbox) -> tuple[OwnFolder, ...]:
    """Return the folder of a first start, which is made where there was none."""
    folder = start.folder
    if not folder.is_dir():
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with hold_lock(folder.parent.with_suffix(".lock")):
            if not folder.is_dir():
                _fill(start, sandbox)
    return (OwnFolder(folder, start.place, writable=False),) if folder.is_dir() else ()


def _fill(start: _FirstStart, sandbox: Sandbox) -> None:
    """Fill the folder; where nothing comes of it, each run does it for itself as it did."""
    kept = start.folder.parent
    earlier = sorted(kept.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in earlier[_VERSIONS_KEPT - 1 :]:
        shutil.rmtree(path)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix="new-") as draft:
        filled, workspace = Path(draft) / "package", Path(draft) / "workspace"
        for each in (filled, workspace):
            each.mkdir(mode=0o700)
        home_folders = (*start.home_folders, OwnFolder(filled, start.place))
        files = GuestFiles(workspace, env=start.env, home_folders=home_folders, own_packages=start.packages)
        end = sandbox.run(start.argv, files, start.env, _START_SECONDS)
        if end.exit_code == 0 and any(filled.iterdir()):
            filled.rename(start.folder)
