"""Prepare an agent's home before a turn, and write a refreshed login back to the user after the turn.

A CLI unpacks and compiles packages at its first start. Septet makes these packages once for all homes.
"""

import hashlib
import logging
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from septet.agents.clis.adapter import FOR_EVERY_AGENT, Adapter, Machine, find_program, select_variables
from septet.agents.clis.own_files import locate, own_packages
from septet.agents.guest.description import GuestFiles, guest_environment
from septet.agents.guest.paths import OwnFolder
from septet.agents.runs.folders import Runs
from septet.agents.runs.homes import AgentHome, Homes, hide_keys_of
from septet.agents.sandbox.sandbox import Sandbox
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.warm import WarmProcess
from septet.errors import LockHeldError
from septet.system.durable import close_after, hold_lock

_VERSIONS_KEPT: Final = 2
"""The number of versions of a CLI whose packages are kept: agents of the previous version may still run."""


@dataclass(frozen=True, slots=True)
class _FirstStart:
    """A start of a CLI in a sandbox, only to fill a folder with packages."""

    folder: Path
    """The folder that receives the packages."""
    place: Path
    """The path at which the CLI writes the packages, and at which guests later read the packages."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    packages: tuple[Path, ...] = ()
    """The user's own packages, which the CLI reads."""
    home_folders: tuple[OwnFolder, ...] = ()


def shared_packages(root: Path, adapter: Adapter, machine: Machine, sandbox: Sandbox) -> tuple[OwnFolder, ...]:
    """Return the folders with the packages that a CLI unpacks and compiles, for use in all homes.

    Packages that the user has unpacked are left out: guests read these already. To fill a missing folder, Septet
    starts the CLI, which prints only its version or help. Agents cannot write in these folders.

    Raises:
        AgentMissingError: The program was not found.
        OSError: The disk refused.
    """
    unpacks, compiled = adapter.capabilities.unpacks, adapter.capabilities.compiled
    if not unpacks and compiled is None:
        return ()
    program = Path(find_program(adapter.name, adapter.program, machine))
    status = program.stat()
    words = f"{program.resolve()}\0{status.st_size}\0{status.st_mtime_ns}"
    version = hashlib.sha256(words.encode()).hexdigest()[:16]
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


def _fill_once(start: _FirstStart, sandbox: Sandbox) -> tuple[OwnFolder, ...]:
    """Return the folder with the packages; if it is missing, first start the CLI to fill it. `()` on failure."""
    folder = start.folder
    if not folder.is_dir():
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with hold_lock(folder.parent.with_suffix(".lock")):
            if not folder.is_dir():
                _fill(start, sandbox)
    return (OwnFolder(folder, start.place, writable=False),) if folder.is_dir() else ()


def _fill(start: _FirstStart, sandbox: Sandbox) -> None:
    """Start the CLI and keep the packages that it writes; also delete the packages of old versions."""
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
        end = sandbox.run(start.argv, files, start.env, 120.0)
        if end.exit_code == 0 and any(filled.iterdir()):
            filled.rename(start.folder)


_log: Final = logging.getLogger(__name__)


def open_home(request: TurnRequest) -> tuple[OwnFolder, ...]:
    """Return the folders of the work order's home; empty if the agent has no sandbox or the host has no homes.

    Raises:
        AgentMissingError: The program was not found.
        OSError: The disk refused.
    """
    runtime = request.runtime
    home = _home_of(request) if runtime.sandbox.confines else None
    if home is None:
        return ()
    return (*home.open(), *shared_packages(home.packages, request.adapter, runtime.host, runtime.sandbox))


def prepare_home(request: TurnRequest, session_id: str | None, *, anew: bool) -> None:
    """Prepare the work order's home, if there is one, for a turn; the caller holds the writer's lock.

    If `anew`, clear the home first; the caller ensures that no warm process works there. Without a sandbox, only
    copy the session from the home to the user's own folders.

    Raises:
        LoginBusyError: Another agent is about to refresh the login.
        OSError: The disk refused.
    """
    home = _home_of(request)
    if home is None:
        return
    if request.runtime.sandbox.confines:
        home.prepare(session_id, request.limits.wall_seconds, anew=anew)
        return
    hide_keys_of(request.adapter, request.runtime.host)
    if session_id is not None:
        home.give_session_to_user(session_id)


def return_login(request: TurnRequest, *, holds_lock: bool = False) -> None:
    """Write a refreshed login back to the user; delete the home's login if no process works in the home.

    An error of the disk or a lock is only logged; a later start, worker or janitor writes the login back. The
    CLI's keys are masked in all later output.
    """
    homes = request.runtime.homes
    if homes is None:
        return
    try:
        if homes.has(request.order_id):
            _take_logins_back(homes, request.runtime.runs, request.order_id, holds_lock=holds_lock)
    except (OSError, LockHeldError) as error:
        _log.warning("login_not_taken_back: %s", error)
    hide_keys_of(request.adapter, request.runtime.host)


def _take_logins_back(homes: Homes, runs: Runs, order_id: str, *, holds_lock: bool) -> None:
    homes.take_logins_back(order_id, is_over=False)
    lock = None if holds_lock else runs.lock_writer(order_id)
    if holds_lock or lock is not None:
        with nullcontext() if lock is None else close_after(lock):
            if WarmProcess.living(runs, order_id) is None:
                homes.take_logins_back(order_id, is_over=True)


def _home_of(request: TurnRequest) -> AgentHome | None:
    runtime = request.runtime
    if runtime.homes is None:
        return None
    return runtime.homes.of(request.order_id, request.adapter, runtime.host)
