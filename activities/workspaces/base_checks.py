"""Run the repository's checks on the base commit, so that people learn of a broken base before agents are paid.

The checks run once, in a copy of a workspace after its set-up and before its first agent. Guests see the copy at
the workspace's own path, because files of the set-up may contain that path. Without a sandbox this is impossible,
and no check runs.
"""

import os
from pathlib import Path
from typing import Final

import structlog

from activities.host.host import Host
from activities.host.repository_commands import run_command
from septet.agents.clis.adapter import FOR_EVERY_AGENT, select_variables
from septet.agents.sandbox.guest_run import GuestCommand
from septet.base_checks import (
    BaseChecks,
    FailedCheck,
    folder_for,
    forget_failure,
    note_folder,
    read_result,
    write_result,
)
from septet.contracts.names import SETTINGS_PATH
from septet.errors import BaseFailsError, SeptetError, SnapshotError
from septet.git.engine.place import Place
from septet.git.snapshots.forget import remove_closed
from septet.repository_settings import RepositorySettings
from septet.system import processes
from septet.system.durable import Patience, await_lock, open_lock, take_lock

_COPY: Final = "copy"
_RECORDS: Final = "runs"
_LOCK: Final = "lock"
_SPARE_SECONDS: Final = 900.0
"""The seconds to make the copy, in addition to the checks' own time."""
_REMEDY: Final = (
    'Mend {} on the base branch and start a new work order; without `on_failing_base = "refuse"` in '
    f"{SETTINGS_PATH}, the work begins anyway."
)

_log = structlog.get_logger()


def look_at_base(host: Host, place: Place, settings: RepositorySettings, *, is_fresh: bool, again: bool) -> None:
    """Run the checks on the base commit unless their result is known, and write the result to disk.

    Idempotent: interrupted checks begin again. All work orders of this host share the result.

    Args:
        settings: The repository's settings at the base commit; they decide whether a failing base is refused.
        is_fresh: Whether no agent has worked in the workspace since its set-up.
        again: Whether failed checks run again, because a person has retried or an earlier attempt died.

    Raises:
        BaseFailsError: A check fails on the base commit, and the repository refuses a failing base.
        HaltedError: The attempt that waits for the checks was cancelled.
    """
    if not settings.checks or not host.sandbox.confines:
        return
    world, env = host.sandbox.world, host.agents.env
    paths = [[str(each.path), each.writable] for each in world.named_paths]
    hosts = [str(each) for each in (*world.way_out.hosts, *world.way_out.setup_hosts)]
    own = [settings.setup, settings.checks, settings.check_seconds]
    folder = folder_for(host.state, place, [*own, paths, hosts, env.get("PATH", "")])
    note_folder(place, folder)
    refuses = settings.on_failing_base == "refuse"
    if not is_fresh:
        return
    try:
        if refuses and again:
            forget_failure(folder)
        _look(host, place, settings, folder, waits=refuses)
    except (SnapshotError, OSError) as error:
        _log.warning("base_not_checked", error=str(error))
    result = read_result(folder) if refuses else None
    if result is not None and result.failed:
        remedy = _REMEDY.format("it" if len(result.failed) == 1 else "them")
        raise BaseFailsError(result.report, remedy=remedy)


def _look(host: Host, place: Place, settings: RepositorySettings, folder: Path, *, waits: bool) -> None:
    """Run the checks in a copy of the workspace, unless their result exists or another activity runs them.

    If `waits` is true, wait for the end of the checks; if it is false, run them in another thread.
    """
    if read_result(folder) is not None:
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if waits:
        descriptor = open_lock(folder / _LOCK)
        try:
            seconds = len(settings.checks) * settings.check_seconds + _SPARE_SECONDS
            await_lock(folder / _LOCK, descriptor, Patience(seconds))
            if read_result(folder) is None:
                _copy(host, place, folder)
                _run(host, place, settings, folder, descriptor)
        finally:
            os.close(descriptor)
        return
    lock = take_lock(folder / _LOCK)
    if lock is None:
        return
    try:
        _copy(host, place, folder)
    except BaseException:
        os.close(lock)
        raise
    host.beside.start("base-checks", lambda: _run_beside(host, place, settings, folder, lock))


def _run_beside(host: Host, place: Place, settings: RepositorySettings, folder: Path, lock: int) -> None:
    """Run the checks and release the lock; an error is logged and not raised."""
    try:
        _run(host, place, settings, folder, lock)
    except (SeptetError, OSError) as error:
        _log.warning("base_not_checked", error=str(error))
    finally:
        os.close(lock)


def _run(host: Host, place: Place, settings: RepositorySettings, folder: Path, lock: int) -> None:
    guests = host.guests(place, folder / _RECORDS, lock)
    env, copy, failed = select_variables(host.agents.env, FOR_EVERY_AGENT), folder / _COPY, list[FailedCheck]()
    try:
        for argv in settings.checks:
            command = GuestCommand(argv, env, copy, settings.check_seconds, seen_at=place.worktree)
            if why := run_command(guests, command, "Check", f"{settings.check_seconds:.0f} s"):
                failed.append(FailedCheck(command=" ".join(argv), why=why))
        result = BaseChecks(base_branch=place.base_branch, base_sha=place.base_sha, failed=tuple(failed))
        write_result(folder, result)
        _log.info("base_checked", base=place.base_sha, failed=[each.command for each in failed])
    finally:
        _remove(host, copy)


def _copy(host: Host, place: Place, folder: Path) -> None:
    """Delete an earlier copy and its records, then copy the workspace."""
    copy = folder / _COPY
    _remove(host, copy)
    _remove(host, folder / _RECORDS)
    copy.mkdir(mode=0o700)
    argv = ("cp", "-a", "--reflink=auto", "--", f"{place.worktree}/.", str(copy))
    done = processes.run(argv, env=host.settings.git_env, timeout_seconds=600.0)
    if done.exit_code != 0:
        _remove(host, copy)
        raise OSError(done.stderr.decode(errors="replace").strip()[-300:] or "cp failed")


def _remove(host: Host, folder: Path) -> None:
    if os.path.lexists(folder):
        remove_closed(folder, host.state.trash)
