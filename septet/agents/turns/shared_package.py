"""What a CLI unpacks of itself as it starts first: once for all work orders, and then to be read alone."""

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Final

from septet.agents.clis.adapter import FOR_EVERY_AGENT, Adapter, Machine, find_program, select_variables
from septet.agents.clis.own_files import locate, own_packages
from septet.agents.guest.description import GuestFiles, guest_environment
from septet.agents.guest.placements import OwnFolder
from septet.agents.turns.sandbox import Sandbox
from septet.system.locks import hold_lock

_UNPACK_SECONDS: Final = 120.0
_VERSIONS_KEPT: Final = 2
"""Agents of the version before may still run."""


def shared_package(root: Path, adapter: Adapter, machine: Machine, sandbox: Sandbox) -> tuple[OwnFolder, ...]:
    """Return where guests see what a CLI has unpacked; nothing where it unpacks nothing, or the user has it.

    The first time the CLI is asked for its version, in a sandbox with nothing but that folder: no agent has ever
    written there.

    Args:
        root: `STATE/packages`.
        adapter: The CLI.
        machine: Where it is.
        sandbox: What confines it.

    Raises:
        AgentMissingError: The program was not found.
        OSError: The disk refused.
    """
    name = adapter.capabilities.unpacks
    if not name or own_packages(adapter, machine):
        return ()
    program = Path(find_program(adapter.name, adapter.program, machine))
    status = program.stat()
    words = f"{program.resolve()}\0{status.st_size}\0{status.st_mtime_ns}"
    folder = root / adapter.name / hashlib.sha256(words.encode()).hexdigest()[:16]
    if not folder.is_dir():
        with hold_lock(root / f"{adapter.name}.lock"):
            if not folder.is_dir():
                _unpack(folder, OwnFolder(folder, locate(adapter, machine, name)), program, machine, sandbox)
    return (OwnFolder(folder, locate(adapter, machine, name), writable=False),) if folder.is_dir() else ()


def _unpack(folder: Path, place: OwnFolder, program: Path, machine: Machine, sandbox: Sandbox) -> None:
    """Fill the folder; where nothing comes of it, each run unpacks for itself as it did."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    earlier = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in earlier[_VERSIONS_KEPT - 1 :]:
        shutil.rmtree(path)
    env = guest_environment(select_variables(machine.env, FOR_EVERY_AGENT))
    with tempfile.TemporaryDirectory(dir=folder.parent.parent, prefix="new-") as draft:
        unpacked, workspace = Path(draft) / "package", Path(draft) / "workspace"
        for each in (unpacked, workspace):
            each.mkdir(mode=0o700)
        files = GuestFiles(workspace, env=env, home_folders=(OwnFolder(unpacked, place.path),))
        end = sandbox.run((str(program), "--version"), files, env, _UNPACK_SECONDS)
        if end.exit_code == 0 and any(unpacked.iterdir()):
            unpacked.rename(folder)
