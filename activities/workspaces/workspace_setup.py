"""Run a repository's set-up commands as guests, once in each workspace, before its first agent."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import structlog

from activities.host.host import Host
from activities.host.repository_commands import run_command
from activities.host.running_attempts import take_fence
from septet.agents.clis.adapter import FOR_EVERY_AGENT, select_variables
from septet.agents.runs.folders import SETUP_FOLDER
from septet.agents.runs.lease import Lease
from septet.agents.runs.logs import lines_of_last_command, refused_in
from septet.agents.sandbox.guest_run import GuestCommand
from septet.agents.sandbox.probe import missing_programs
from septet.contracts.names import SETTINGS_PATH
from septet.contracts.wire import Wire
from septet.errors import SetupError
from septet.git.engine.place import Place, find_record
from septet.git.evidence.evidence import current_head
from septet.git.evidence.setup_changes import OF_SETUP, exclude_files, refuse_changes, setup_changes
from septet.git.snapshots.repository_stamp import note_baseline
from septet.git.vault.vault import find, vault_at
from septet.repository_settings import RepositorySettings
from septet.system.durable import read_model, write_durably
from septet.telemetry.metrics import PROXY_REFUSALS
from septet.telemetry.recorder import RECORDER

_FILE: Final = "setup.json"
_STEP: Final = "setup"
_NO_AGENT: Final = "set-up"
"""The value in place of an agent's name in the metric of refused addresses, for set-up and checks."""
_AFTER: Final = "set-up has run"
_AGAIN_BY: Final = (
    f"Then continue with `septet retry`; if you have changed {SETTINGS_PATH}, commit it on the base branch and "
    "start a new work order."
)
_RETRY: Final = (
    f"Correct `setup` in {SETTINGS_PATH} on the base branch and start a new work order; if it was something else, "
    "`septet retry` runs set-up again."
)

_log = structlog.get_logger()


class _SetupRecord(Wire):
    """The progress of a workspace's set-up, in a file next to the vault, where no guest can write."""

    before: str
    after: str = ""
    """The name of the checkpoint after set-up; empty until set-up has ended."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The right to write in a workspace: the latest attempt's lease, and the writer's lock."""

    lease: Lease
    lock: int
    """The descriptor of the writer's lock."""


Hold = Callable[[], AbstractContextManager[Writer]]
"""Returns a context manager that takes the right to write in a workspace for its block."""


def set_up_workspace(host: Host, place: Place, settings: RepositorySettings, hold: Hold) -> str:
    """Run the set-up commands, and return the name of the checkpoint after them; empty without commands.

    Idempotent: a completed set-up does not run again. An interrupted set-up runs again, in the workspace as it was
    before. Leaves a record of each command, the checkpoint, and the record of a completed set-up.

    Args:
        settings: The repository's settings as of the base commit.
        hold: Gives the right to write in the workspace; used only if a command has to run.

    Raises:
        SetupError: A command failed, or set-up has changed what would be committed.
        SupersededError, HaltedError: A later attempt has begun, or this attempt was cancelled.
        WorkspaceBusyError: Another process holds the writer's lock.
        SnapshotError: The workspace could not be secured first.
    """
    record = _read_record(place)
    if not settings.setup or (record is not None and record.after):
        return record.after if record is not None else ""
    with hold() as writer:
        record = _read_record(place)
        if record is None:
            record = _SetupRecord(before=host.snapshots.checkpoint_once(place, "before set-up").name)
            _write_record(place, record)
        else:
            host.snapshots.return_to(place, record.before, "set-up runs again", _STEP)
        # Set-up may install its programs in a writable path.
        if not any(each.writable for each in host.sandbox.world.named_paths):
            expect_programs(host, place, settings.setup, "Set-up command")
        head, began = current_head(place).sha, time.monotonic()
        _log.info("setup_began", commands=len(settings.setup))
        try:
            _run_commands(host, place, settings, writer)
            writer.lease.check()
            after = _keep(host, place, record.before, head)
        except SetupError:
            host.snapshots.own_repository(place, _STEP)
            raise
        note_baseline(place, find(vault_at(place), after))
        _write_record(place, record.model_copy(update={"after": after}))
        _log.info("setup_ended", seconds=round(time.monotonic() - began, 3))
        return after


def expect_programs(host: Host, place: Place, commands: Sequence[Sequence[str]], what: str) -> None:
    """Raise if a program of a repository's commands is missing in the sandbox; call this before agents start.

    Raises:
        SetupError: Guests do not find a program; the remedy describes how guests can see it.
    """
    env = select_variables(host.agents.env, FOR_EVERY_AGENT)
    missing = next(missing_programs(host.sandbox, place.worktree, env, commands, what), None)
    if missing is not None:
        raise SetupError(missing.message, remedy=f"{missing.remedy} {_AGAIN_BY}")


def find_setup(place: Place) -> tuple[str, str] | None:
    """Return the names of the snapshots before and after the last set-up; `None` without a set-up."""
    record = _read_record(place)
    return (record.before, record.after) if record is not None and record.after else None


def forget_setup(place: Place) -> None:
    """Delete the record of a set-up, so that set-up runs again."""
    (place.records / _FILE).unlink(missing_ok=True)


def forget_setup_of_removed(host: Host, place_id: str) -> None:
    """Delete the record of a set-up if the workspace was removed and will be opened again on this host."""
    record = find_record(host.state, place_id)
    place = record.place(host.state, {}) if record is not None else None
    if place is not None and not place.worktree.exists():
        forget_setup(place)


@contextmanager
def writing(host: Host, place_id: str, visit: str = "") -> Iterator[Writer]:
    """Hold a workspace's writer's lock in the block, for the running attempt, which becomes the latest.

    Args:
        visit: The work order's visit to the lane; empty for the work order's own workspace.

    Raises:
        SupersededError: A later attempt has begun already.
        WorkspaceBusyError: Another process holds the writer's lock.
    """
    lease = take_fence(host.runs, place_id, visit).lease
    with lease.hold() as lock:
        yield Writer(lease, lock)


def _run_commands(host: Host, place: Place, settings: RepositorySettings, writer: Writer) -> None:
    """Run the set-up commands in order, in the environment of agents; each is an argv, without a shell."""
    folder = host.runs.folder_of(place.order_id) / SETUP_FOLDER
    guests, env = host.guests(place, folder, writer.lock), select_variables(host.agents.env, FOR_EVERY_AGENT)
    guests = replace(guests, sandbox=guests.sandbox.for_setup())
    ends_at = time.monotonic() + settings.setup_seconds
    allowed = f"the {settings.setup_seconds:.0f} s that set-up has (`setup_seconds`)"
    for argv in settings.setup:
        command = GuestCommand(argv, env, place.worktree, max(ends_at - time.monotonic(), 1.0))
        failure = run_command(guests, command, "Set-up command", allowed)
        refused = refused_in(lines_of_last_command(folder)) if failure or RECORDER.is_on else []
        if refused:
            RECORDER.record(PROXY_REFUSALS, len(refused), step=_STEP, agent=_NO_AGENT)
        if failure:
            raise SetupError(failure, remedy=f"{_let_through(refused)}{_RETRY}")


def _let_through(hosts: Sequence[str]) -> str:
    """Return the remedy for network hosts that the sandbox refused to a command; empty without such hosts."""
    if not hosts:
        return ""
    return (
        f"Its sandbox refused {', '.join(hosts[:5])}. Start the worker (`septet up`) again with them "
        "added to SEPTET_SETUP_HOSTS, for set-up alone, or to SEPTET_GUEST_HOSTS, for agents and checks too; "
        "then run `septet retry`. If that was not the cause: "
    )


def _keep(host: Host, place: Place, before: str, head: str) -> str:
    """Take a checkpoint with the files of the set-up, so that they count as no agent's work; return its name."""
    kept = host.snapshots.checkpoint_once(place, _AFTER)
    changes = setup_changes(place, find(vault_at(place), before), kept)
    refuse_changes(place, changes, head)
    if not changes.added:
        return kept.name
    exclude_files(place, changes.added, OF_SETUP)
    return host.snapshots.checkpoint_once(place, _AFTER).name


def _read_record(place: Place) -> _SetupRecord | None:
    return read_model(place.records / _FILE, _SetupRecord)


def _write_record(place: Place, record: _SetupRecord) -> None:
    write_durably(place.records / _FILE, record.model_dump_json().encode())
