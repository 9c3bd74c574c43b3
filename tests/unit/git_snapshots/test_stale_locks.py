"""Lock files are cleared away while others write: what is taken for stale belongs to nobody."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.repositories import git

from septet.errors import GitBusyError
from septet.git.engine.place import Place
from septet.git.engine.stale_locks import clear_unguarded_locks, guard_of, share_guard
from septet.git.snapshots.take import take
from septet.git.vault.facts import SnapshotOptions
from septet.git.vault.vault import list_snapshots, prepare, publish, vault_at

pytestmark = pytest.mark.law

ORDERS = 4
ROUNDS = 12
SWEEPER = """\
import sys
from pathlib import Path
from septet.git.engine.stale_locks import clear_unguarded_locks
print("sweeps", flush=True)
while True:
    clear_unguarded_locks(Path(sys.argv[1]))
"""


@contextmanager
def sweeping_process(vault: Path) -> Iterator[None]:
    """Sweep a vault all the time, as another worker of the host does."""
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
    """Snapshots, and refs that git writes and deletes, all succeed while two workers sweep their vault all the time."""
    places = [open_place(f"wo-{number}") for number in range(ORDERS)]
    vault, over = vault_at(places[0]), threading.Event()

    def sweep() -> None:
        while not over.is_set():
            prepare(places[0])

    def write(place: Place) -> None:
        for number in range(ROUNDS):
            (place.worktree / "work.txt").write_text(f"{number}\n")
            snapshot = take(place, "checkpoint", SnapshotOptions("a test", 1 << 20))
            assert snapshot is not None
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
    """What a thread has made stays for as long as it shares the guard, and goes when nobody does."""
    lock = place.vault / "refs" / "septet" / ".draft.lock"
    with share_guard(guard_of(place.vault)):
        lock.touch()
        clear_unguarded_locks(place.vault)
        assert lock.exists()
    clear_unguarded_locks(place.vault)
    assert not lock.exists()


def test_a_git_keeps_sweeps_away_after_its_worker_died(place: Place) -> None:
    """The guard is shared by a process that inherited it, until that one ends."""
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
    """The process that sweeps is looked at as any other."""
    lock = place.vault / "config.lock"
    with lock.open("w"), pytest.raises(GitBusyError, match=r"config\.lock"):
        clear_unguarded_locks(place.vault)
    assert lock.exists()


def test_who_may_only_read_a_vault_reads_it(place: Place) -> None:
    """A ref is published, and read by one who shares no guard because there is no folder to write in."""
    publish(place, "wo-1/0099-checkpoint", place.base_sha)
    with share_guard(place.vault / "nowhere" / "x.guard") as inherited:
        assert inherited == ()
