"""A sweep removes stale lock files and no lock file of a running writer."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.repositories import git
from fakes.snapshots import snapshot_of

from septet.errors import GitBusyError
from septet.git.engine.engine import clear_unguarded_locks, guard_of, share_guard
from septet.git.engine.place import Place
from septet.git.vault.vault import list_snapshots, prepare, vault_at

pytestmark = pytest.mark.law

ORDERS = 4
ROUNDS = 12
SWEEPER = """\
import sys
from pathlib import Path
from septet.git.engine.engine import clear_unguarded_locks
print("sweeps", flush=True)
while True:
    clear_unguarded_locks(Path(sys.argv[1]))
"""


@contextmanager
def sweeping_process(vault: Path) -> Iterator[None]:
    """Sweep a vault without a pause in another process, as another worker of the host does."""
    with subprocess.Popen([sys.executable, "-c", SWEEPER, str(vault)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            ended_before = process.poll()
            process.kill()
        assert ended_before is None


def test_a_sweep_takes_nothing_from_those_who_write(open_place: Callable[[str], Place]) -> None:
    """All snapshots and ref updates succeed while two threads and a process sweep their vault."""
    places = [open_place(f"wo-{number}") for number in range(ORDERS)]
    vault, over = vault_at(places[0]), threading.Event()

    def sweep() -> None:
        while not over.is_set():
            prepare(places[0])

    def write(place: Place) -> None:
        for number in range(ROUNDS):
            (place.worktree / "work.txt").write_text(f"{number}\n")
            snapshot = snapshot_of(place)
            kept = f"refs/kept/{place.order_id}/{number}"
            vault.run("update-ref", kept, snapshot.commit)
            vault.run("update-ref", "-d", kept, snapshot.commit)

    with sweeping_process(vault.git_dir), ThreadPoolExecutor(ORDERS + 2) as threads:
        sweeps = [threads.submit(sweep) for _ in range(2)]
        writes = [threads.submit(write, place) for place in places]
        failures = [failure for each in writes if (failure := each.exception()) is not None]
        over.set()
        failures += [failure for each in sweeps if (failure := each.exception()) is not None]
    assert failures == []
    taken = [snapshot for snapshot in list_snapshots(vault) if snapshot.kind == "checkpoint"]
    assert len(taken) == ORDERS * ROUNDS
    git(vault.git_dir, "fsck", "--strict")


def test_nothing_is_swept_while_the_guard_is_shared(place: Place) -> None:
    """A lock file stays while a thread shares the guard, and the next sweep removes the file."""
    lock = place.vault / "refs" / "septet" / ".draft.lock"
    with share_guard(guard_of(place.vault)):
        lock.touch()
        clear_unguarded_locks(place.vault)
        assert lock.exists()
    clear_unguarded_locks(place.vault)
    assert not lock.exists()


def test_a_git_keeps_sweeps_away_after_its_worker_died(place: Place) -> None:
    """A git that inherited the guard shares the guard until it ends, even after its worker died."""
    lock = place.vault / "packed-refs.lock"
    lock.touch()
    with share_guard(guard_of(place.vault)) as inherited:
        process = subprocess.Popen(["sleep", "60"], pass_fds=inherited)
    try:
        clear_unguarded_locks(place.vault)
        assert lock.exists()
    finally:
        process.kill()
        process.wait()
    clear_unguarded_locks(place.vault)
    assert not lock.exists()


def test_a_lock_that_this_process_has_open_is_respected(place: Place) -> None:
    """A sweep fails on a lock file that its own process has open, as on a lock file of any process."""
    lock = place.vault / "config.lock"
    with lock.open("w"), pytest.raises(GitBusyError, match=r"config\.lock"):
        clear_unguarded_locks(place.vault)
    assert lock.exists()
