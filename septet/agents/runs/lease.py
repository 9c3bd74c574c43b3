"""Leases: only a work order's latest attempt may write, and only while the attempt holds the writer's lock.

Each attempt first adds a line to a file in the work order's folder. An attempt that was stopped for a long time
finds a later attempt's line when it continues, and gives up. Otherwise it would commit and push a second time.

The line of a worker's next attempt at the same activity replaces the earlier line, so the file stays short.
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
from septet.system.durable import await_lock, close_after, open_lock
from septet.system.lock_holder import holder_of, read_lock_holders, stopped_holder

WorkerId = tuple[int, int]
"""A process id, and the start of the process in the kernel's ticks since the boot."""

ATTEMPTS_FILE: Final = "attempts.jsonl"
RESTORED: Final = b'{"before_the_backup":'
"""The first bytes of a line that was restored from a backup."""
WAY_SECONDS: Final = 1.0
"""The seconds after which to check whether SIGSTOP has stopped the lock's holder."""


class Attempt(msgspec.Struct, frozen=True):
    """One attempt at an activity, which a line in a file of the work order records."""

    run_id: str
    """The id of the workflow's run, followed by the number of the visit to the lane."""
    activity_id: str
    """The id of the activity in its workflow run; ids that are numbers count the activities."""
    number: int = 1
    """The attempt's number for its activity; after a person's reset of the activity, the numbers begin again."""
    started_at: float = 0.0
    """The time at which the Temporal server started the attempt, in seconds by the server's clock."""
    worker: WorkerId = (0, 0)
    epoch: int = 0
    """The attempt's number among all attempts of the work order on this host."""


@dataclass(frozen=True, slots=True)
class Lease:
    """An attempt's right to write, which ends when a later attempt begins."""

    runs: Runs
    order_id: str
    epoch: int
    _line: bytes
    """The attempt's line; a different or further line belongs to a later attempt."""
    _begins_at: int

    @classmethod
    def take(
        cls, runs: Runs, key: RunKey, *, lane: tuple[str, str] = ("", ""), number: int = 1, started_at: float = 0.0
    ) -> Self:
        """Record an attempt and return its lease.

        `lane` has the name of the lane and the number of the visit; both are empty for a work order's own
        workspace. If a person has reset the activity since the last attempt, the earlier runs of `key` no longer
        count.

        Raises:
            SupersededError: A later attempt has begun already.
            LockHeldError: The worker of another attempt was stopped while it recorded the attempt.
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
        """Raise an error unless this attempt is still the latest attempt.

        Raises:
            SupersededError: A later attempt has begun.
        """
        with (self.runs.folder_of(self.order_id) / ATTEMPTS_FILE).open("rb") as file:
            file.seek(self._begins_at)
            is_last = file.read() == self._line
        if not is_last:
            raise SupersededError(f"A later attempt at {self.order_id} has begun: this one writes nothing more.")

    def make_way(self) -> bool:
        """Kill an earlier attempt's stopped worker that holds the writer's lock; return whether one was killed.

        Raises:
            SupersededError: A later attempt has begun; it kills such a worker itself.
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
            WorkspaceBusyError: Another process holds the lock for longer than `patience_seconds`.
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
    """Return an error that names the holder of a work order's writer's lock."""
    living, holder = runs.living(order_id), holder_of(runs.lock_of(order_id))
    who = f"the agent of {living.folder}" if living is not None else holder or "an unknown process"
    return WorkspaceBusyError(
        f"The writer's lock of {order_id} is held by {who}.",
        remedy="Wait until it ends, or stop it.",
        retry_after_seconds=5.0,
    )


def _is_superseded(attempt: Attempt, last: Attempt, of_its_run: list[Attempt]) -> bool:
    """Return whether `attempt`, which begins now, is older than `last`, the last recorded attempt.

    Of two workflow runs, the run without recorded attempts is later. In a workflow run, activities follow one
    another: an activity with a lower number, or with earlier attempts, is over. After a reset of an activity, its
    attempts count from 1 again; the times of the Temporal server then identify the older attempt.
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
    """Return whether a person reset the activity after its last attempt; attempts then count from 1 again."""
    is_again = attempt.number <= last.number and attempt.started_at > last.started_at
    return is_again and _is_same_activity(attempt, last)


def _split_repeats(lines: list[bytes], attempt: Attempt) -> tuple[list[bytes], list[bytes]]:
    """Split off the lines at the end that record attempts at the activity of `attempt`.

    Return the lines that are left, and the split-off lines of other workers.
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
    """Return whether a work order's files come from a restored backup."""
    path = runs.folder_of(order_id) / ATTEMPTS_FILE
    return path.exists() and any(line.startswith(RESTORED) for line in path.read_bytes().splitlines())


def _attempts_file(runs: Runs, order_id: str) -> Path:
    folder = runs.folder_of(order_id)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / ATTEMPTS_FILE


def _of_run(run_id: str, lines: list[bytes]) -> list[Attempt]:
    """Return the recorded attempts of a workflow run; other lines, perhaps thousands, are not decoded."""
    mark = msgspec.json.encode(run_id)
    attempts = (_parse_attempt(line) for line in lines if mark in line)
    return [attempt for attempt in attempts if attempt is not None and attempt.run_id == run_id]


def _parse_attempt(line: bytes) -> Attempt | None:
    try:
        return msgspec.json.decode(line, type=Attempt)
    except msgspec.MsgspecError:
        return None


def worker_id(pid: int) -> WorkerId:
    """Return the id and the start time of a process, which identify it; zeros if the start time is unknown."""
    start = identity(pid)["pid_start"]
    return (pid, int(start)) if start is not None else (0, 0)


def end_stopped_writer(runs: Runs, order_id: str, older_writers: Collection[WorkerId]) -> bool:
    """Kill a worker that SIGSTOP has stopped while it holds the writer's lock; return whether one was killed.

    Only a worker in `older_writers` is killed, with its children that work in the worktree. The worker's agents in
    other worktrees live on.
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
