"""The checkpoint remote: its contents, its only writer, and the continuation of work on another host."""

import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.pictures import picture
from fakes.repositories import Origin, git
from fakes.snapshots import snapshot_of

from septet.errors import GitError, NotFoundError
from septet.git.checkpoints.checkpoint_remote import CheckpointRef, checkpoint_ref_at, checkpoint_ref_in
from septet.git.checkpoints.keep import MovedError, expect_hold, keep
from septet.git.checkpoints.move import WorkspaceMove, is_here, move_here, prepare_host
from septet.git.engine.address import parse_address
from septet.git.engine.place import Place, record_of
from septet.git.engine.remote import Remote
from septet.git.evidence.evidence import gather
from septet.git.snapshots.take import take
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.vault import list_snapshots, vault_at
from septet.git.workspace.mirror import Base
from septet.git.workspace.workspace import place_for
from septet.state import StateDir

pytestmark = pytest.mark.law

MOVES = """\
import pickle, sys
from pathlib import Path
from septet.git.checkpoints.move import move_here
move_here(*pickle.loads(Path(sys.argv[1]).read_bytes()))
"""
OPTIONS = SnapshotOptions("the work order comes back", 1 << 20)


def is_kept_elsewhere(place: Place, shelf: CheckpointRef, snapshot: Snapshot) -> bool:
    vault = vault_at(place)
    if shelf.tip(vault) is None:
        return False
    tip = shelf.fetch(vault)
    return vault.try_run("merge-base", "--is-ancestor", snapshot.commit, tip).exit_code == 0


@pytest.fixture
def ref(tmp_path: Path, place: Place) -> CheckpointRef:
    """Return the work order's ref in a folder that does not exist yet."""
    return checkpoint_ref_in(tmp_path / "checkpoints", place, record_of(place).first_run_id)


@pytest.fixture
def other(tmp_path: Path, env: dict[str, str]) -> StateDir:
    state = StateDir(tmp_path / "another" / "host")
    state.prepare()
    return state


def move_of(place: Place, other: StateDir, ref: CheckpointRef, name: str, host: str = "B") -> WorkspaceMove:
    base = Base(place.base_branch, place.base_sha)
    there = place_for(other, place.order_id, parse_address(place.origin), base, place.env)
    return WorkspaceMove(there, ref, Remote(place.origin, place.env), name, host)


def arrive(move: WorkspaceMove) -> Place:
    prepare_host(move)
    assert not is_here(move)
    move_here(move, OPTIONS)
    return move.place


def change(place: Place) -> None:
    (place.worktree / "README.md").write_text("# Changed\n")
    git(place.worktree, "checkout", "-q", "-b", "topic")
    git(place.worktree, "commit", "-q", "-am", "by the agent")
    (place.worktree / "tool").write_text("#!/bin/sh\n")
    (place.worktree / "tool").chmod(0o750)
    (place.worktree / "debug.log").write_text("ignored\n")
    (place.worktree / "empty").mkdir()


def test_the_workspace_opens_elsewhere_as_it_was(place: Place, ref: CheckpointRef, other: StateDir) -> None:
    """On another host every byte, mode and branch and the index return, and `git fsck` finds no error."""
    change(place)
    keep(place, ref, "A")
    kept = snapshot_of(place)
    keep(place, ref, "A")
    before, evidence = picture(place.worktree), gather(place)
    shutil.rmtree(place.worktree.parent.parent)

    there = arrive(move_of(place, other, ref, kept.name))

    assert picture(there.worktree) == before
    assert gather(there) == evidence
    assert git(there.worktree, "fsck", "--connectivity-only") == ""
    assert git(there.worktree, "log", "-1", "--format=%s") == "by the agent"
    assert take(there, "checkpoint", SnapshotOptions("the same", 1 << 20, equal_to=kept)) is None


def test_a_host_whose_work_order_has_moved_keeps_nothing_more(
    place: Place, ref: CheckpointRef, other: StateDir
) -> None:
    """The old host's pushes are refused after a move, and its check before a push of the branch fails too."""
    kept = snapshot_of(place)
    keep(place, ref, "A")
    expect_hold(place, ref, "A")
    there = arrive(move_of(place, other, ref, kept.name))
    snapshot_of(place)
    for _ in range(2):
        with pytest.raises(MovedError, match="host B"):
            keep(place, ref, "A")
        with pytest.raises(MovedError, match="host B"):
            expect_hold(place, ref, "A")
    snapshot_of(there)
    keep(there, ref, "B")
    expect_hold(there, ref, "B")


def test_a_work_order_that_comes_back_loses_nothing_of_what_lies_there(
    place: Place, ref: CheckpointRef, other: StateDir, state: StateDir
) -> None:
    """A return to the old host rescues its worktree first, and keeps the snapshots of both hosts."""
    keep(place, ref, "A")
    (place.worktree / "late.txt").write_text("after the host was given up\n")
    late = snapshot_of(place, "rescue")
    first = list_snapshots(vault_at(place), place.order_id)[0]
    there = arrive(move_of(place, other, ref, first.name))
    (there.worktree / "README.md").write_text("# Changed there\n")
    kept = snapshot_of(there)
    assert kept.name.partition("-")[0] == late.name.partition("-")[0]
    (there.worktree / "half.txt").write_text("what another try began with\n")
    rescue = snapshot_of(there, "rescue")
    keep(there, ref, "B")
    (place.worktree / "later.txt").write_text("still later\n")

    back = arrive(move_of(there, state, ref, kept.name, host="A"))

    assert (back.worktree / "README.md").read_text() == "# Changed there\n"
    assert not (back.worktree / "later.txt").exists()
    commits = {snapshot.commit for snapshot in list_snapshots(vault_at(back), "wo-1")}
    assert {kept.commit, late.commit, rescue.commit} <= commits
    assert "later.txt" in git(back.vault, "grep", "-l", "still later", *commits, check=False)


@pytest.mark.needs("strace")
def test_a_move_that_is_killed_as_it_takes_names_loses_no_snapshot(
    place: Place, ref: CheckpointRef, other: StateDir, state: StateDir, tmp_path: Path
) -> None:
    """A move that is killed while it renames snapshots loses no snapshot, and the next move finishes."""
    keep(place, ref, "A")
    (place.worktree / "late.txt").write_text("after the host was given up\n")
    late = snapshot_of(place, "rescue")
    there = arrive(move_of(place, other, ref, list_snapshots(vault_at(place), place.order_id)[0].name))
    (there.worktree / "README.md").write_text("# Changed there\n")
    rescue = snapshot_of(there, "rescue")
    assert (rescue.name, rescue.commit != late.commit) == (late.name, True)
    keep(there, ref, "B")
    back = move_of(there, state, ref, rescue.name, host="A")
    prepare_host(back)

    for renames in (2, 3):
        _move_and_die(back, tmp_path / "move", renames)
        assert late.commit in {snapshot.commit for snapshot in list_snapshots(vault_at(place), "wo-1")}
    move_here(back, OPTIONS)

    commits = [snapshot.commit for snapshot in list_snapshots(vault_at(place), "wo-1")]
    assert (commits.count(rescue.commit), commits.count(late.commit)) == (1, 1)


def _move_and_die(move: WorkspaceMove, file: Path, renames: int) -> None:
    """Start a move in another process that is killed at its rename number `renames`."""
    file.write_bytes(pickle.dumps((move, OPTIONS)))
    kill = ("strace", "-qq", "-o", "/dev/null", "-e", f"inject=/rename:signal=KILL:when={renames}")
    done = subprocess.run([*kill, sys.executable, "-c", MOVES, str(file)], capture_output=True, check=False)
    assert done.returncode in {-signal.SIGKILL, 128 + signal.SIGKILL}, done.stderr


def test_a_checkpoint_that_was_never_pushed_is_named(place: Place, ref: CheckpointRef, other: StateDir) -> None:
    """The error of a move names a checkpoint that was never pushed, and the work order stays on its host."""
    keep(place, ref, "A")
    missing = snapshot_of(place)
    move = move_of(place, other, ref, missing.name)
    prepare_host(move)
    with pytest.raises(NotFoundError, match=f"{missing.name} never reached"):
        move_here(move, OPTIONS)
    expect_hold(place, ref, "A")


def test_what_a_failed_push_left_behind_goes_with_the_next_one(
    place: Place, ref: CheckpointRef, tmp_path: Path
) -> None:
    """The next push contains the snapshots that a failed push did not send."""
    first = snapshot_of(place)
    folder = tmp_path / "checkpoints"
    folder.write_text("in the way")
    with pytest.raises((GitError, OSError)):
        keep(place, ref, "A")
    folder.unlink()
    second = snapshot_of(place)
    keep(place, ref, "A")
    assert is_kept_elsewhere(place, ref, first)
    assert is_kept_elsewhere(place, ref, second)


def test_a_push_that_was_not_noted_is_no_move(place: Place, ref: CheckpointRef) -> None:
    """A host that died between a push and its note finds its own name on the remote and continues."""
    keep(place, ref, "A")
    git(place.vault, "update-ref", "-d", ref.local)
    snapshot = snapshot_of(place)
    expect_hold(place, ref, "A")
    keep(place, ref, "A")
    assert is_kept_elsewhere(place, ref, snapshot)


def test_a_remote_that_was_made_anew_gets_everything_again(
    place: Place, ref: CheckpointRef, tmp_path: Path
) -> None:
    """The next push sends all snapshots again to a remote that was lost."""
    first = snapshot_of(place)
    keep(place, ref, "A")
    shutil.rmtree(tmp_path / "checkpoints")
    snapshot_of(place)
    keep(place, ref, "A")
    assert is_kept_elsewhere(place, ref, first)


def test_only_what_is_new_is_pushed(place: Place, ref: CheckpointRef) -> None:
    """A checkpoint after a small change sends a few objects, and not the whole tree."""
    for number in range(300):
        (place.worktree / f"file-{number}").write_text(f"{number}\n")
    snapshot_of(place)
    keep(place, ref, "A")
    before = objects(ref)
    (place.worktree / "one-more").write_text("small\n")
    snapshot_of(place)
    keep(place, ref, "A")
    assert objects(ref) - before < 20


def test_the_origin_itself_can_keep_checkpoints_out_of_sight(
    place: Place, origin: Origin, other: StateDir
) -> None:
    """Hidden refs of the origin can hold checkpoints; its branches and tags do not change."""
    change(place)
    kept = snapshot_of(place)
    ref = checkpoint_ref_at(Remote(place.origin, place.env), place, "one run")
    branches = git(origin.bare, "for-each-ref", "refs/heads", "refs/tags")
    keep(place, ref, "A")
    assert git(origin.bare, "for-each-ref", "refs/heads", "refs/tags") == branches
    there = arrive(move_of(place, other, ref, kept.name))
    assert (there.worktree / "tool").read_text() == "#!/bin/sh\n"


def objects(ref: CheckpointRef) -> int:
    counted = git(Path(ref.remote.url), "count-objects", "-v")
    return sum(int(line.split()[1]) for line in counted.splitlines() if line.startswith(("in-pack", "count")))
