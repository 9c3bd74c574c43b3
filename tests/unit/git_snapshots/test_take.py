"""When a snapshot is recorded, which name it gets, and what the loss of the ledger costs."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import git
from fakes.snapshots import snapshot_of

from septet.errors import SnapshotError
from septet.git.commits.branches import create_branch
from septet.git.engine.place import Place
from septet.git.evidence.difference import difference
from septet.git.snapshots.scan import scan
from septet.git.snapshots.take import take
from septet.git.vault.contents import usual_bits
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.survey import Figures
from septet.git.vault.vault import list_snapshots, prepare, ref_of, vault_at, verify

pytestmark = pytest.mark.law

LIMIT_BYTES = 1 << 20


def _rescue(place: Place, unless_equal_to: Snapshot | None = None) -> Snapshot | None:
    return take(place, "rescue", SnapshotOptions("a test", LIMIT_BYTES, equal_to=unless_equal_to))


def test_the_order_in_which_files_are_listed_changes_no_snapshot() -> None:
    """The order of listed files does not matter: of two equally common permissions the higher counts as usual."""
    rows = [(b"run.sh", Figures(0o100755, 1, 1, 1, 1)), (b"tool", Figures(0o100750, 1, 1, 1, 2))]
    assert usual_bits({b"": dict(rows)}) == usual_bits({b"": dict(reversed(rows))}) == {0o100755: 0o755}


def test_no_rescue_of_what_git_rewrites_by_itself(place: Place) -> None:
    """A new branch at the base commit, a refreshed index and a detached HEAD cause no rescue."""
    create_branch(place, "feat-issue-1-wo-1-x")
    (place.worktree / "README.md").touch()
    git(place.worktree, "status")
    assert _rescue(place) is None
    git(place.worktree, "checkout", "-q", "--detach")
    assert _rescue(place) is None


CHANGES: dict[str, Callable[[Path], object]] = {
    "file": lambda tree: (tree / "README.md").write_text("changed\n"),
    "ignored file": lambda tree: (tree / "x.log").write_text("changed\n"),
    "mode": lambda tree: (tree / "README.md").chmod(0o600),
    "empty folder": lambda tree: (tree / "new").mkdir(),
    "index alone": lambda tree: git(tree, "rm", "-q", "--cached", "README.md"),
    "intent to add": lambda tree: ((tree / "new").write_text("x"), git(tree, "add", "-N", "new")),
    "no index": lambda tree: (tree / ".git/index").unlink(),
    "index that is no index": lambda tree: (tree / ".git/index").write_bytes(b"DIRC but no more"),
    "commit on another branch": lambda tree: (
        git(tree, "checkout", "-q", "-b", "other"),
        git(tree, "commit", "-q", "--allow-empty", "-m", "x"),
        git(tree, "checkout", "-q", "main"),
    ),
    "stash": lambda tree: ((tree / "README.md").write_text("changed\n"), git(tree, "stash", "-q")),
    "commit that was dropped": lambda tree: (
        git(tree, "commit", "-q", "--allow-empty", "-m", "x"),
        git(tree, "reset", "-q", "--hard", "HEAD~1"),
    ),
    "FIFO": lambda tree: os.mkfifo(tree / "fifo"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_may_be_work_is_rescued(place: Place, change: Callable[[Path], object]) -> None:
    """Every change of files, modes, index, commits or stash causes a rescue."""
    change(place.worktree)
    assert _rescue(place) is not None


def test_a_checkpoint_is_always_recorded(place: Place) -> None:
    """Two checkpoints of a state have the same content and different names."""
    first, second = (snapshot_of(place, step="build_plan") for _ in range(2))
    assert (first.content, first.tree) == (second.content, second.tree)
    assert [first.name, second.name] == ["wo-1/0001-checkpoint", "wo-1/0002-checkpoint"]
    assert (first.step, first.reason, first.kind) == ("build_plan", "a test", "checkpoint")


def test_nothing_is_recorded_where_another_snapshot_serves(place: Place) -> None:
    """A snapshot that equals the given snapshot is not recorded again."""
    (place.worktree / "README.md").write_text("changed\n")
    first = snapshot_of(place, "rescue")
    assert _rescue(place, unless_equal_to=first) is None
    (place.worktree / "README.md").write_text("changed again\n")
    assert _rescue(place, unless_equal_to=first) is not None


def test_a_checkpoint_by_what_was_seen_is_the_same(place: Place) -> None:
    """A checkpoint from an earlier scan has the content of a new scan, with the present `.git`."""
    (place.worktree / "new" / "deep").mkdir(parents=True)
    (place.worktree / "new" / "deep" / "file").write_text("work")
    last_scan = scan(place, ignored_limit_bytes=LIMIT_BYTES)
    create_branch(place, "feat-issue-1-wo-1-x")

    by_sight = take(place, "checkpoint", SnapshotOptions("a test", LIMIT_BYTES), last_scan)

    assert by_sight is not None
    assert by_sight.content == snapshot_of(place).content


def test_what_was_seen_before_another_snapshot_is_looked_at_again(place: Place) -> None:
    """A scan that is older than the last snapshot does not count."""
    last_scan = scan(place, ignored_limit_bytes=LIMIT_BYTES)
    (place.worktree / "new").write_text("work")
    last = snapshot_of(place)

    assert take(place, "checkpoint", SnapshotOptions("", LIMIT_BYTES, equal_to=last), last_scan) is None


def test_a_change_that_keeps_size_and_time_is_seen(place: Place) -> None:
    """A snapshot stores a changed file again although its size and modification time did not change."""
    path = place.worktree / "README.md"
    facts = path.stat()
    path.write_text(path.read_text().upper())
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    snapshot = snapshot_of(place)
    assert git(place.vault, "cat-file", "blob", f"{snapshot.commit}:tree/README.md") == "# SAMPLE"


def test_a_change_right_after_a_snapshot_is_seen(place: Place, tmp_path: Path) -> None:
    """A file that changes twice within one tick of the clock is in the next snapshot with its last content."""
    path = place.worktree / "README.md"
    for round_ in range(10):
        path.write_text(f"{round_:04d}\n")
        snapshot_of(place)
        path.write_text(f"{round_:04d}!"[1:] + "\n")
        snapshot = snapshot_of(place)
        assert git(place.vault, "cat-file", "blob", f"{snapshot.commit}:tree/README.md") == f"{round_:04d}!"[1:]


def test_without_the_ledger_a_snapshot_is_the_same(place: Place) -> None:
    """A lost, damaged or outdated ledger does not change the content of a snapshot."""
    (place.worktree / "x.log").write_text("ignored\n")
    (place.worktree / "new.txt").write_text("new\n")
    first = snapshot_of(place)
    ledger = place.records / "ledger"
    for damage in (b"", ledger.read_bytes()[:-10], b"\x91\x63" + b"\xb8\xbd\x8e\x19", None):
        if damage is None:
            ledger.unlink()
        else:
            ledger.write_bytes(damage)
        again = snapshot_of(place)
        assert again.content == first.content
    assert again.name == "wo-1/0005-checkpoint"
    verify(vault_at(place), again)


def test_without_the_ledger_the_base_is_still_known(place: Place) -> None:
    """A worker without the ledger writes no rescue of an unchanged workspace."""
    (place.records / "ledger").unlink()
    assert _rescue(place) is None


def test_a_ledger_whose_snapshot_is_gone_is_not_believed(place: Place) -> None:
    """A ledger of a snapshot whose ref was removed does not count, and all files are stored again."""
    (place.worktree / "new.txt").write_text("new\n")
    gone = snapshot_of(place)
    git(place.vault, "update-ref", "-d", ref_of(gone.name))
    for pack in (place.vault / "objects/pack").glob("*"):
        pack.unlink()
    verify(vault_at(place), snapshot_of(place))


def test_packed_refs_keep_their_numbers(place: Place) -> None:
    """After `git pack-refs` in the vault no number is given twice."""
    first = snapshot_of(place)
    git(place.vault, "pack-refs", "--all")
    assert snapshot_of(place).name == "wo-1/0002-checkpoint"
    assert first.name in [snapshot.name for snapshot in list_snapshots(vault_at(place), "wo-1")]


def test_an_empty_mirror_only_costs_room(place: Place) -> None:
    """A snapshot contains all objects itself if the mirror's objects are gone."""
    (place.mirror / "objects").rename(place.mirror / "away")
    (place.records / "ledger").unlink()
    (place.worktree / "README.md").write_text("changed\n")
    verify(vault_at(place), snapshot_of(place, "rescue"))


def test_without_a_vault_there_is_no_snapshot(place: Place) -> None:
    """A missing vault or worktree causes an error that says that no snapshot could be taken."""
    place.vault.rename(place.vault.with_name("away"))
    with pytest.raises(SnapshotError, match="could be taken.*Nothing was removed"):
        _rescue(place)
    place.worktree.rename(place.worktree.with_name("gone"))
    with pytest.raises(SnapshotError, match="could be taken"):
        _rescue(place)


def test_two_work_orders_at_once(open_place: Callable[[str], Place], tmp_path: Path) -> None:
    """Snapshots of two work orders, each by two threads, have different names and stay whole."""
    places = [open_place("wo-1"), open_place("wo-2")]

    def work(number: int) -> list[str]:
        place = places[number % 2]
        (place.worktree / f"file-{number}").write_text(f"{number}\n")
        return [snapshot_of(place).name for _ in range(5)]

    with ThreadPoolExecutor(4) as threads:
        names = [name for taken in threads.map(work, range(4)) for name in taken]
    assert len(set(names)) == 20
    found = list_snapshots(vault_at(places[0]))
    assert sorted(snapshot.name for snapshot in found if snapshot.kind == "checkpoint") == sorted(names)
    for place in places:
        verify(vault_at(place), list_snapshots(vault_at(place), place.order_id)[-1])
    git(places[0].vault, "fsck", "--strict")


def test_a_full_disk_loses_nothing(place: Place) -> None:
    """On a full disk the snapshot fails with a remedy and leaves no unfinished pack."""
    (place.worktree / "large").write_bytes(os.urandom(3 << 20))
    packs = sorted((place.vault / "objects/pack").iterdir())
    program = (
        "import pickle, resource, signal, sys\n"
        "from septet.errors import SnapshotError\n"
        "from septet.git.snapshots.take import take\n"
        "from septet.git.vault.facts import SnapshotOptions\n"
        "place = pickle.load(sys.stdin.buffer)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "try:\n"
        "    take(place, 'rescue', SnapshotOptions('a test', 0))\n"
        "except SnapshotError as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(place), capture_output=True, check=True, cwd=Path.cwd()
    )
    assert b"cannot be written" in ended.stdout
    assert b"Make room" in ended.stdout
    assert sorted((place.vault / "objects/pack").iterdir()) == packs
    assert _rescue(place) is not None


def test_many_snapshots_are_joined(place: Place) -> None:
    """The preparation of a workspace joins the packs of many small snapshots, and all snapshots stay whole."""
    for number in range(60):
        (place.worktree / "README.md").write_text(f"{number}\n")
        snapshot_of(place)
    prepare(place)
    assert len(list((place.vault / "objects/pack").glob("*.pack"))) < 50
    for snapshot in list_snapshots(vault_at(place), "wo-1"):
        verify(vault_at(place), snapshot)
    (place.worktree / "README.md").write_text("after\n")
    verify(vault_at(place), snapshot_of(place))


def test_a_file_that_is_too_large_is_listed_unread(place: Place) -> None:
    """The snapshot lists a file over the size limit without reading it, and contains it once it is smaller."""
    place = replace(place, file_limit_bytes=1 << 20)
    with (place.worktree / "hole").open("wb") as file:
        file.truncate(3 << 30)
    began = time.process_time()
    snapshot = snapshot_of(place)
    assert [(each.path, each.size_bytes) for each in snapshot.left_out] == [("hole", 3 << 30)]
    shown = difference(place, limit_bytes=1000)
    assert ([file.path for file in shown.files], shown.whole) == ([], False)
    assert time.process_time() - began < 5
    os.truncate(place.worktree / "hole", 1 << 20)
    assert snapshot_of(place).left_out == ()
