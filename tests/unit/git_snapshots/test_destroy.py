"""A return and a removal first secure a workspace in a snapshot, and stop if the snapshot is impossible."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.messes import commit, conflict, nest, swap_file_and_folder
from fakes.pictures import picture, restored_picture
from fakes.repositories import git
from fakes.snapshots import snapshot_of

from septet.errors import SnapshotError
from septet.git.engine.place import Place
from septet.git.snapshots.destroy import remove_workspace, return_to
from septet.git.snapshots.restore import restore
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.vault import list_snapshots, vault_at

pytestmark = pytest.mark.law

LIMIT_BYTES = 1 << 20
OPTIONS = SnapshotOptions("a test", LIMIT_BYTES, "implement_plan")


def _work(tree: Path) -> None:
    (tree / "src/app.py").write_text("staged\n")
    git(tree, "add", "src/app.py")
    (tree / "src/app.py").write_text("changed again\n")
    (tree / "windows.txt").write_bytes(b"a\nb\r\n")
    (tree / "logo.bin").unlink()
    git(tree, "mv", "run.sh", "moved.sh")
    (tree / "README.md").chmod(0o600)
    (tree / "link").unlink()
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "new/empty").mkdir(parents=True)
    (tree / "debug.log").write_text("ignored\n")


def _closed_folder(tree: Path) -> None:
    (tree / "closed/in").mkdir(parents=True)
    (tree / "closed/in/file").write_text("x")
    (tree / "closed").chmod(0o500)


MESSES: dict[str, Callable[[Path], object]] = {
    "work": _work,
    "commits": lambda tree: commit(tree, README="committed\n"),
    "conflict": lambda tree: conflict(tree, "merge"),
    "nested repository": lambda tree: nest(tree, "vendor/lib"),
    "no repository": lambda tree: (tree / ".git").rename(tree / "was-git"),
    "closed folder": _closed_folder,
    "file and folder change places": swap_file_and_folder,
}


def _base(place: Place) -> Snapshot:
    return list_snapshots(vault_at(place))[0]


@pytest.mark.parametrize("mess", MESSES.values(), ids=MESSES)
def test_a_return_is_bit_for_bit_and_loses_nothing(
    place: Place, tmp_path: Path, mess: Callable[[Path], object]
) -> None:
    """After a return the workspace equals the snapshot, and the rescue restores the earlier state."""
    before = picture(place.worktree)
    mess(place.worktree)
    messy = picture(place.worktree)
    rescue = return_to(place, _base(place), OPTIONS)
    assert picture(place.worktree) == before
    assert rescue is not None
    assert (rescue.kind, rescue.reason, rescue.step) == ("rescue", "a test", "implement_plan")
    restore(vault_at(place), rescue, tmp_path / "restored")
    assert restored_picture(tmp_path / "restored", messy) == messy


def test_a_return_goes_forward_as_well(place: Place) -> None:
    """A workspace with changes can return to a snapshot that is later than its state."""
    _work(place.worktree)
    work, checkpoint = picture(place.worktree), snapshot_of(place)
    return_to(place, _base(place), OPTIONS)
    (place.worktree / "README.md").write_text("something else\n")
    return_to(place, checkpoint, OPTIONS)
    assert picture(place.worktree) == work


def test_a_return_to_what_is_there_does_nothing(place: Place) -> None:
    """A return to the present state writes no rescue and touches no file."""
    _work(place.worktree)
    checkpoint = snapshot_of(place)
    told = (place.worktree / "src/app.py").stat()
    assert return_to(place, checkpoint, OPTIONS) is None
    assert (place.worktree / "src/app.py").stat() == told
    assert list_snapshots(vault_at(place))[-1] == checkpoint


def test_what_was_left_out_stays_where_it_is(place: Place) -> None:
    """A return leaves an ignored file over the limit and a FIFO alone: no snapshot contains them."""
    (place.worktree / "dist").mkdir()
    (place.worktree / "dist/large.bin").write_bytes(os.urandom(LIMIT_BYTES + 1))
    os.mkfifo(place.worktree / "fifo")
    (place.worktree / "src/app.py").write_text("changed\n")
    rescue = return_to(place, _base(place), OPTIONS)
    assert rescue is not None
    assert len(rescue.left_out) == 2
    assert (place.worktree / "dist/large.bin").stat().st_size == LIMIT_BYTES + 1
    assert (place.worktree / "fifo").is_fifo()
    assert (place.worktree / "src/app.py").read_text().startswith("print")


def test_what_is_in_the_way_and_in_no_snapshot_stops_a_return(place: Place) -> None:
    """A return changes nothing if a FIFO, which no snapshot contains, occupies the path of a file to restore."""
    (place.worktree / "README.md").unlink()
    os.mkfifo(place.worktree / "README.md")
    (place.worktree / "src/app.py").write_text("changed\n")
    with pytest.raises(SnapshotError, match="README.md") as refused:
        return_to(place, _base(place), OPTIONS)
    assert "Move that elsewhere" in refused.value.remedy
    assert (place.worktree / "README.md").is_fifo()
    assert (place.worktree / "src/app.py").read_text() == "changed\n"


def test_a_snapshot_that_is_not_whole_is_not_returned_to(place: Place) -> None:
    """A return verifies the snapshot first: with a damaged vault it changes nothing."""
    (place.worktree / "src/app.py").write_text("changed\n")
    base = _base(place)
    for pack in (place.vault / "objects/pack").glob("*.pack"):
        pack.unlink()
    with pytest.raises(SnapshotError):
        return_to(place, base, OPTIONS)
    assert (place.worktree / "src/app.py").read_text() == "changed\n"


@pytest.mark.parametrize("mess", [_work, _closed_folder])
def test_a_removed_workspace_comes_back_from_its_rescue(
    place: Place, tmp_path: Path, mess: Callable[[Path], object]
) -> None:
    """The removal of a workspace leaves a rescue with all its files."""
    mess(place.worktree)
    messy = picture(place.worktree)
    rescue = remove_workspace(place, OPTIONS)
    assert not place.worktree.exists()
    assert rescue is not None
    restore(vault_at(place), rescue, tmp_path / "restored")
    assert restored_picture(tmp_path / "restored", messy) == messy


def test_a_removal_is_idempotent(place: Place) -> None:
    """The removal of a missing workspace succeeds, and clears the rest of an earlier removal."""
    assert remove_workspace(place, OPTIONS) is None
    half_removed = place.worktree.with_name("wo-1~removed")
    (half_removed / "rest").mkdir(parents=True)
    assert remove_workspace(place, OPTIONS) is None
    assert not half_removed.exists()


def test_a_removal_refuses_what_no_snapshot_holds(place: Place) -> None:
    """A workspace with files that no snapshot contains stays whole until a person accepts their loss."""
    for number in range(7):
        os.mkfifo(place.worktree / f"fifo-{number}")
    before = picture(place.worktree)
    with pytest.raises(SnapshotError, match=r"fifo-0, .* and 2 more"):
        remove_workspace(place, OPTIONS)
    assert picture(place.worktree) == before
    assert remove_workspace(place, OPTIONS, accept_loss=True) is not None
    assert not place.worktree.exists()


def test_a_removal_that_cannot_be_secured_removes_nothing(place: Place) -> None:
    """A removal without a possible snapshot leaves the workspace unchanged."""
    (place.worktree / "src/app.py").write_text("changed\n")
    before = picture(place.worktree)
    place.vault.rename(place.vault.with_name("elsewhere"))
    with pytest.raises(SnapshotError):
        remove_workspace(place, OPTIONS)
    assert picture(place.worktree) == before


def test_a_disk_that_fails_on_the_way_is_told_with_the_rescue(place: Place) -> None:
    """The error of a removal that fails half way names the snapshot with all files."""
    (place.worktree / "src/app.py").write_text("changed\n")
    in_the_way = place.worktree.with_name("wo-1~removed")
    in_the_way.write_text("a file where a folder is expected")
    with pytest.raises(SnapshotError) as failed:
        remove_workspace(place, OPTIONS)
    assert list_snapshots(vault_at(place))[-1].name in failed.value.remedy
    assert (place.worktree / "src/app.py").exists()
