"""Permit writes only to the work order's latest attempt, and only while this attempt holds the writer's lock.

Each attempt is recorded as a line of a file in the work order's folder, before the attempt does anything. An
attempt that was stopped for longer than its time-out finds the line of a later attempt when it continues, and
gives up. Otherwise it would commit, push and open a pull request for the second time.

If a worker repeats an attempt, for example after a refusal because the runner is down, the new line replaces the
worker's old line: a work order has one line for each activity and worker, after any number of attempts.
"""

import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import msgspec
import psutil

from septet.agents.processes.process_tree import identity
from septet.agents.runs.folders import Runs
from septet.agents.runs.records import RunKey
from septet.errors import SupersededError, WorkspaceBusyError
from septet.system.durable import close_after
from septet.system.lock_holder import holder_of, read_lock_holders, stopped_holder
from septet.system.locks import await_lock, open_lock

WorkerId = tuple[int, int]
"""A process id, and the process's start in the kernel's ticks since the boot."""

ATTEMPTS_FILE: Final = "attempts.jsonl"
RESTORED: Final = b'{"before_the_backup":'
"""The beginning of a line that comes from a restored backup."""
WAY_SECONDS: Final = 1.0
"""The seconds after which to check whether the lock's holder is stopped: most holders release the lock sooner."""


class Attempt(msgspec.Struct, frozen=True):
    """An attempt at an activity, with the ids and numbers that the Temporal server gives."""

    run_id: str
    """The id of the workflow's run, followed by the visit to the lane."""
    activity_id: str
    """The id of the activity in its workflow run; plain numbers count the activities."""
    number: int = 1
    """The number among its activity's attempts; a person's reset of the activity restarts the count."""
    started_at: float = 0.0
    """The time at which the server handed the attempt out, in seconds by the server's clock."""
    worker: WorkerId = (0, 0)
    epoch: int = 0
    """The number of attempts of the work order on this host, including this attempt."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One attempt's right to write, which ends when a later attempt begins."""

    runs: Runs
    order_id: str
    epoch: int
    _line: bytes
    """The attempt's line; any line after this line or in its place belongs to a later attempt."""
    _begins_at: int

    @classmethod
    def take(
        cls, runs: Runs, key: RunKey, *, lane: tuple[str, str] = ("", ""), number: int = 1, started_at: float = 0.0
    ) -> Self:
        """Record the attempt and return its lease.

        If a person has reset the activity since its last attempt, earlier runs of the key no longer count. `lane`
        has the lane's name and the work order's visit to the lane, both empty for the work order's own workspace.
        The server handed the attempt out at `started_at`, in seconds.

        Raises:
            SupersededError: A later attempt has begun already: this attempt was held up between server and host.
            LockHeldError: Another attempt's worker was stopped while it recorded its attempt.
        """
        place_id, visit = lane
        order_id = place_id or key.workflow_id
        attempt = Attempt(f"{key.run_id}{visit}", key.activity_id, number, started_at, worker_id(os.getpid()))
        path = _attempts_file(runs, order_id)
        with os.fdopen(open_lock(path), "r+b") as file:
            await_lock(path, file.fileno())
            lines = file.read().splitlines()
            last = next(filter(None, map(_parse_attempt, reversed(lines))), None)
            if last is not None and _is_superseded(attempt, last, _of_run(attempt.run_id, lines)):
                raise SupersededError(
                    f"Attempt {attempt.number} at activity {attempt.activity_id} of {order_id} comes too late."
                )
            if last is not None and _was_reset(attempt, last):
                runs.set_aside(order_id, key)
            before = max(last.epoch if last is not None else 0, sum(line.endswith(b"}") for line in lines))
            attempt = msgspec.structs.replace(attempt, epoch=before + 1)
            kept, of_others = _split_repeats(lines, attempt)
            # A line that a dying machine left half written ends here; readers skip an empty line.
            file.seek(len(b"\n".join(kept)))
            file.writelines(b"\n" + line for line in of_others)
            begins_at, line = file.tell(), b"\n" + msgspec.json.encode(attempt)
            file.write(line)
            file.truncate()
            return cls(runs, order_id, attempt.epoch, line, begins_at)

    def check(self) -> None:
        """Check that this attempt is still the last attempt.

        Raises:
            SupersededError: A later attempt has begun.
        """
        with (self.runs.folder_of(self.order_id) / ATTEMPTS_FILE).open("rb") as file:
            file.seek(self._begins_at)
            is_last = file.read() == self._line
        if not is_last:
            raise SupersededError(f"A later attempt at {self.order_id} has begun: this one writes nothing more.")

    def make_way(self) -> bool:
        """Kill a stopped worker of an earlier attempt that holds the writer's lock; return whether there was one.

        Raises:
            SupersededError: A later attempt has begun, which does the same work.
        """
        self.check()
        attempts = map(_parse_attempt, _attempts_file(self.runs, self.order_id).read_bytes().splitlines())
        workers = {attempt.worker for attempt in attempts if attempt is not None}
        return end_stopped_writer(self.runs, self.order_id, workers - {(0, 0), worker_id(os.getpid())})

    @contextmanager
    def hold(self, patience_seconds: float = 30.0) -> Iterator[int]:
        """Hold the writer's lock during the block, and yield the lock's descriptor.

        Raises:
            SupersededError: A later attempt has begun.
            WorkspaceBusyError: Another process keeps the lock.
        """
        now = time.monotonic()
        bound, way_at = now + patience_seconds, now + WAY_SECONDS
        while (lock := self.runs.lock_writer(self.order_id)) is None:
            self.check()
            if time.monotonic() > bound:
                raise busy_error(self.runs, self.order_id)
            if time.monotonic() > way_at:
                way_at += WAY_SECONDS
                self.make_way()
            time.sleep(0.02)
        with close_after(lock):
            self.check()
            yield lock


def busy_error(runs: Runs, order_id: str) -> WorkspaceBusyError:
    """Return the error that names the holder of a work order's writer's lock."""
    living, holder = runs.living(order_id), holder_of(runs.lock_of(order_id))
    who = f"the agent of {living.folder}" if living is not None else holder or "an unknown process"
    return WorkspaceBusyError(
        f"The writer's lock of {order_id} is held by {who}.",
        remedy="Wait until it ends, or stop it.",
        retry_after_seconds=5.0,
    )


def _is_superseded(attempt: Attempt, last: Attempt, of_its_run: list[Attempt]) -> bool:
    """Return whether the last recorded attempt is later than the attempt that begins, by the server's numbers.

    If the workflow runs differ, a run that is new here is the later one; a known run was superseded by a reset. A
    workflow run takes activities one after the other, so one with a lower number, or a known name, is over. After
    a reset of an activity the attempts count from 1 again, so the server's clock identifies an old attempt.
    """
    if attempt.run_id != last.run_id:
        return bool(of_its_run)
    ours, theirs = attempt.activity_id, last.activity_id
    if ours != theirs:
        if ours.isdecimal() and theirs.isdecimal():
            return int(ours) < int(theirs)
        return any(ours == other.activity_id for other in of_its_run)
    return attempt.number <= last.number and attempt.started_at < last.started_at


def _was_reset(attempt: Attempt, last: Attempt) -> bool:
    """Return whether the activity was reset after the last attempt: otherwise the attempts' number grows."""
    is_again = attempt.number <= last.number and attempt.started_at > last.started_at
    return is_again and _is_same_activity(attempt, last)


def _split_repeats(lines: list[bytes], attempt: Attempt) -> tuple[list[bytes], list[bytes]]:
    """Return the lines before the last lines of the attempt's activity, and those last lines of other workers.

    The attempt's line replaces the lines of the attempt's own worker. `make_way` needs the lines of other workers.
    """
    start = len(lines)
    of_others: list[bytes] = []
    while start:
        other = _parse_attempt(lines[start - 1])
        if other is None or not _is_same_activity(other, attempt):
            break
        start -= 1
        if other.worker != attempt.worker:
            of_others.insert(0, lines[start])
    return lines[:start], of_others


def _is_same_activity(attempt: Attempt, other: Attempt) -> bool:
    return (attempt.run_id, attempt.activity_id) == (other.run_id, other.activity_id)


def was_restored(runs: Runs, order_id: str) -> bool:
    """Return whether a work order's files come from a backup; the work order may have continued elsewhere."""
    path = runs.folder_of(order_id) / ATTEMPTS_FILE
    return path.exists() and any(line.startswith(RESTORED) for line in path.read_bytes().splitlines())


def _attempts_file(runs: Runs, order_id: str) -> Path:
    folder = runs.folder_of(order_id)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / ATTEMPTS_FILE


def _of_run(run_id: str, lines: list[bytes]) -> list[Attempt]:
    """Return the attempts of a workflow run; the thousands of other attempts of a lane are not decoded."""
    mark = msgspec.json.encode(run_id)
    attempts = (_parse_attempt(line) for line in lines if mark in line)
    return [attempt for attempt in attempts if attempt is not None and attempt.run_id == run_id]


def _parse_attempt(line: bytes) -> Attempt | None:
    try:
        return msgspec.json.decode(line, type=Attempt)
    except msgspec.MsgspecError:
        return None


def worker_id(pid: int) -> WorkerId:
    """Return an identity that no later process with the same id has; zeros if the system reports no start."""
    start = identity(pid)["pid_start"]
    return (pid, int(start)) if start is not None else (0, 0)


def end_stopped_writer(runs: Runs, order_id: str, older_writers: Collection[WorkerId]) -> bool:
    """Kill a stopped worker that holds a work order's writer's lock; return whether there was such a worker.

    The worker's children in the worktree die too; the worker's other agents live on and are adopted. Any other
    holder, for example a person's `septet rescue restore`, is left alone.
    """
    holder = stopped_holder(runs.lock_of(order_id), read_lock_holders())
    if holder is None or worker_id(holder.pid) not in older_writers:
        return False
    worktrees = {Path(run.record.worktree) for run in runs.of(order_id) if run.record is not None}
    with suppress(psutil.Error):
        at_work = [child for child in holder.children(recursive=True) if _is_in(child, worktrees)]
        for process in (holder, *at_work):
            with suppress(psutil.NoSuchProcess):
                process.kill()
    return True


def _is_in(process: psutil.Process, worktrees: set[Path]) -> bool:
    with suppress(psutil.Error):
        folder = Path(process.cwd())
        return any(folder.is_relative_to(worktree) for worktree in worktrees)
    return False
