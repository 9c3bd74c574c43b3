"""The room of forgotten snapshots becomes free, and no snapshot and no workspace loses an object."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from fakes.pictures import picture, restored_picture
from fakes.repositories import git
from fakes.snapshots import snapshot_of

from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.snapshots.destroy import remove_workspace
from septet.git.snapshots.forget import drop_forgotten, forget_chain, forget_snapshots, has_forgotten
from septet.git.snapshots.restore import restore
from septet.git.vault.facts import SnapshotOptions
from septet.git.vault.pack import Pack
from septet.git.vault.vault import find, list_snapshots, vault_at, verify

pytestmark = pytest.mark.law

DAYS = timedelta(days=2)
OPTIONS = SnapshotOptions("a test", 1 << 20)
DROP = """
import sys
from datetime import timedelta
from pathlib import Path
from septet.git.snapshots.forget import drop_forgotten
from septet.git.engine.engine import Git
print("ready", flush=True)
drop_forgotten(Git(Path(sys.argv[1]), env={"PATH": sys.argv[2]}), timedelta(0))
"""


def write(place: Place, word: str) -> None:
    for number in range(20):
        (place.worktree / f"{word}-{number}.txt").write_text(f"{word} {number}\n" * 50)


def loose(repository: Git) -> int:
    return int(repository.text("count-objects").partition(" ")[0])


def objects(repository: Git) -> int:
    """Return the number of the repository's own objects, loose or packed."""
    return len(repository.run("cat-file", "--batch-all-objects", "--batch-check").splitlines())


def forget(place: Place) -> None:
    remove_workspace(place, OPTIONS)
    forget_snapshots(place, list_snapshots(vault_at(place), place.order_id))


def test_what_is_forgotten_waits_in_one_pack_and_is_dropped_in_its_time(
    open_place: Callable[..., Place], tmp_path: Path
) -> None:
    """Forgotten objects wait in one pack until their time is over, and a living snapshot stays whole."""
    old, living = open_place("wo-1"), open_place("wo-2")
    write(old, "old")
    write(living, "living")
    snapshot_of(old, "rescue")
    rescue, before = snapshot_of(living, "rescue"), picture(living.worktree)
    vault = vault_at(living)
    forget(old)
    all_objects = objects(vault)

    drop_forgotten(vault, DAYS)

    assert loose(vault) == 0
    assert objects(vault) == all_objects
    assert len(list((vault.git_dir / "objects/pack").glob("*.pack"))) == 2
    assert not has_forgotten(vault, DAYS)
    for cruft in (vault.git_dir / "objects/pack").glob("*.mtimes"):
        os.utime(cruft, (0, 0))
    assert has_forgotten(vault, DAYS)
    drop_forgotten(vault, timedelta(0))
    assert objects(vault) < all_objects
    assert not has_forgotten(vault, timedelta(0))
    assert loose(vault) == 0
    verify(vault, find(vault, rescue.name))
    restore(vault, rescue, tmp_path / "back")
    assert restored_picture(tmp_path / "back", before) == before


def test_a_snapshot_that_is_under_way_keeps_what_it_has_written(place: Place) -> None:
    """The objects of an unfinished snapshot stay: they are young, although no ref names them yet."""
    with Pack(place.vault) as pack:
        name = pack.add("blob", b"of a snapshot without a name yet\n").hex()
        pack.publish()

    drop_forgotten(vault_at(place), DAYS)

    assert vault_at(place).text("cat-file", "blob", name) == "of a snapshot without a name yet"


def test_a_snapshot_holds_again_what_another_one_left(open_place: Callable[..., Place]) -> None:
    """A later snapshot with the same file stores the file again and needs no forgotten object."""
    old = open_place("wo-1")
    write(old, "same")
    snapshot_of(old, "rescue")
    vault = vault_at(old)
    forget(old)
    drop_forgotten(vault, DAYS)
    later = open_place("wo-2")
    write(later, "same")
    rescue = snapshot_of(later, "rescue")

    drop_forgotten(vault, timedelta(0))
    drop_forgotten(vault, timedelta(0))

    verify(vault, rescue)


def test_what_was_known_of_the_checkpoint_remote_goes_with_the_last_snapshot(place: Place) -> None:
    """A work order's refs of the checkpoint remote are removed, since they would keep all its snapshots."""
    vault, (snapshot, *_) = vault_at(place), list_snapshots(vault_at(place))
    for ref in ("refs/kept/wo-1/0123", "refs/seen/wo-1/0123", "refs/kept/wo-10/0123"):
        vault.run("update-ref", ref, snapshot.commit)

    forget_chain(vault, "wo-1")

    assert vault.text("for-each-ref", "--format=%(refname)", "refs/kept", "refs/seen") == "refs/kept/wo-10/0123"


def test_a_drop_that_is_killed_at_any_time_loses_nothing_that_lives(
    open_place: Callable[..., Place], tmp_path: Path
) -> None:
    """After drops that were killed at various times every living snapshot is whole, and the next drop finishes."""
    living = open_place("wo-living")
    write(living, "living")
    rescue, before = snapshot_of(living, "rescue"), picture(living.worktree)
    vault = vault_at(living)
    alone = objects(vault)
    for round_ in range(8):
        old = open_place(f"wo-{round_}")
        write(old, f"old-{round_}")
        snapshot_of(old, "rescue")
        forget(old)
        _drop_and_die(vault.git_dir, after_seconds=0.01 * round_)
        verify(vault, rescue)
        for each in list_snapshots(vault):
            verify(vault, each)

    drop_forgotten(vault, timedelta(0))

    assert loose(vault) == 0
    assert objects(vault) == alone
    restore(vault, rescue, tmp_path / "back")
    assert restored_picture(tmp_path / "back", before) == before
    git(living.worktree, "fsck", "--connectivity-only")


def _drop_and_die(vault: Path, after_seconds: float) -> None:
    """Start a drop in another process, and kill the process and its git."""
    argv = [sys.executable, "-c", DROP, str(vault), os.environ["PATH"]]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=dict(os.environ)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after_seconds)
        with suppress(psutil.NoSuchProcess):
            for each in (*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)):
                with suppress(psutil.NoSuchProcess):
                    each.kill()
