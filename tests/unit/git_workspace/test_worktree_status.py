"""What git said of a worktree at a snapshot, and what changed since, is what git says now."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import git, git_env, make_origin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from septet.git.address import parse_address
from septet.git.commit import commit_all
from septet.git.evidence import gather
from septet.git.place import Place
from septet.git.snapshots.facts import Snapshot
from septet.git.snapshots.scan import WorktreeScan, scan
from septet.git.snapshots.take import seed, take
from septet.git.snapshots.vault import prepare
from septet.git.workspace import open_workspace
from septet.git.worktree_status import WorktreeStatus, load_worktree_status, save_worktree_status
from septet.state import StateDir

LIMIT_BYTES = 1 << 20
Edit = Callable[[Path], object]


def _snapshot(place: Place, **options: object) -> Snapshot:
    snapshot = take(place, "checkpoint", "a test", ignored_limit_bytes=LIMIT_BYTES, **options)  # type: ignore[arg-type]
    assert snapshot is not None
    return snapshot


def _settle(place: Place) -> None:
    """Look by what is known, see that git says the same on its own, and remember it, as a step does."""
    walked = scan(place, ignored_limit_bytes=LIMIT_BYTES)
    evidence, whole = gather(place, scan=walked), gather(place)
    assert evidence == whole
    if evidence.status is not None:
        walked = replace(walked, untracked=evidence.status.untracked_paths())
    snapshot = _snapshot(place, scan=walked)
    assert take(place, "checkpoint", "again", ignored_limit_bytes=LIMIT_BYTES, unless_equal_to=snapshot) is None
    if evidence.status is not None:
        save_worktree_status(place, snapshot.commit, evidence.status)


def _trusted(place: Place) -> WorktreeScan:
    """Settle until no file is too young any more for its figures to be trusted; return a scan after that."""
    for _ in range(100):
        _settle(place)
        walked = scan(place, ignored_limit_bytes=LIMIT_BYTES)
        if walked.changed_paths == frozenset():
            break
    return walked


def _begin(place: Place) -> None:
    prepare(place)
    base = seed(place, ignored_limit_bytes=LIMIT_BYTES)
    standing = gather(place).status
    assert standing is not None
    save_worktree_status(place, base.commit, standing)


def _write(name: str, content: str) -> Edit:
    def write(tree: Path) -> None:
        path = tree / name
        if path.is_dir():
            shutil.rmtree(path)
        for above in reversed(path.relative_to(tree).parents):
            if (tree / above).is_file() or (tree / above).is_symlink():
                (tree / above).unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    return write


def _remove(name: str) -> Edit:
    def remove(tree: Path) -> None:
        path = tree / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            with suppress(FileNotFoundError, NotADirectoryError):  # a file may be where its folder was
                path.unlink()

    return remove


def _move(old: str, new: str) -> Edit:
    def move(tree: Path) -> None:
        into_itself = (tree / new).is_relative_to(tree / old)
        if (
            not into_itself
            and (tree / old).exists()
            and not (tree / new).exists()
            and (tree / new).parent.is_dir()
        ):
            (tree / old).rename(tree / new)

    return move


def _mode(name: str, bits: int) -> Edit:
    def change(tree: Path) -> None:
        if (tree / name).exists():
            (tree / name).chmod(bits)

    return change


def _git(*arguments: str) -> Edit:
    return lambda tree: git(tree, *arguments, check=False)


def _nested(tree: Path) -> None:
    (tree / "inner").mkdir(exist_ok=True)
    git(tree / "inner", "init", "-q")
    (tree / "inner" / "file").write_text("nested\n")


NAMES = ("README.md", "src/app.py", "src/b", "src", "new", "new/a b*", "dist/x", "x.log", ":(top)odd", "é")
RULES = (".gitignore", ".gitattributes", "src/.gitignore")

EDITS = st.one_of(
    st.builds(_write, st.sampled_from(NAMES), st.sampled_from(["", "one\n", "two\r\n"])),
    st.builds(_write, st.sampled_from(RULES), st.sampled_from(["", "*.log\n", "new\n", "*.md text eol=crlf\n"])),
    st.builds(_remove, st.sampled_from((*NAMES, *RULES))),
    st.builds(_move, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds(_mode, st.sampled_from(NAMES[:4]), st.sampled_from([0o700, 0o755])),
    st.sampled_from(
        [
            _git("status"),
            _git("add", "-A"),
            _git("add", "-f", "x.log"),
            _git("reset", "-q"),
            _git("rm", "-q", "--cached", "README.md"),
            _git("commit", "-q", "-m", "work"),
            _git("checkout", "-q", "--", "."),
            _git("stash", "-q", "-u"),
            _write(".git/info/exclude", "new\n"),
            _nested,
        ]
    ),
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Place]:
    """Return a function that opens one more workspace."""
    root = tmp_path_factory.mktemp("standing")
    origin = make_origin(root / "origins")
    origin.push({"README.md": "# Sample\n", "src/app.py": "print('hello')\n", ".gitignore": "*.log\ndist/\n"})
    state, address, numbers = StateDir(root / "state"), parse_address(str(origin.bare)), iter(range(10_000))
    state.prepare()

    def open_it() -> Place:
        name = f"wo-{next(numbers)}"
        place = open_workspace(state, address, name, first_run_id=name, env=git_env(root / "home"))
        _begin(place)
        return place

    return open_it


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.lists(EDITS, max_size=4), min_size=1, max_size=4))
def test_looking_at_what_changed_tells_what_looking_at_everything_tells(
    opened: Callable[[], Place], steps: list[list[Edit]]
) -> None:
    """Whatever agents do in step after step: evidence by the walk is git's own, and so is the snapshot."""
    place = opened()
    for edits in steps:
        for edit in edits:
            edit(place.worktree)
        _settle(place)


def test_a_worktree_in_which_nothing_changed_needs_no_git(opened: Callable[[], Place]) -> None:
    """Where the walk met nothing new, the evidence is what it was, and git is not asked."""
    place = opened()
    (place.worktree / "new.py").write_text("new\n")
    walked = _trusted(place)
    assert walked.changed_paths == frozenset()
    (place.records / "view" / "index").rename(
        place.records / "view" / "index.away"
    )  # with it git could tell nothing
    assert [change.path for change in gather(place, scan=walked).files_changed] == ["new.py"]


def test_after_the_commit_of_the_engine_the_worktree_is_known_to_be_clean(opened: Callable[[], Place]) -> None:
    """What was committed is remembered as clean, and what comes after is seen."""
    place = opened()
    git(place.worktree, "checkout", "-q", "-b", "feat-1")
    (place.worktree / "new.py").write_text("new\n")
    _settle(place)
    walked = scan(place, ignored_limit_bytes=LIMIT_BYTES)
    sha = commit_all(place, "feat: new", scan=walked)
    save_worktree_status(place, _snapshot(place, scan=walked).commit, WorktreeStatus(sha, ()))
    _settle(place)
    (place.worktree / "new.py").write_text("newer\n")
    assert not gather(place, scan=scan(place, ignored_limit_bytes=LIMIT_BYTES)).clean
    _settle(place)


def test_a_look_at_few_files_writes_no_index_of_all(opened: Callable[[], Place]) -> None:
    """Where the index is as young as its files, a change of the same size is seen, and the index stays as it is."""
    place = opened()
    index, readme = place.records / "view" / "index", place.worktree / "README.md"
    facts = readme.stat()
    os.utime(index, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
    before = index.stat()
    readme.write_text("# SAMPLE\n")
    os.utime(readme, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
    walked = scan(place, ignored_limit_bytes=LIMIT_BYTES)
    assert b"README.md" in (walked.changed_paths or ())
    assert [change.path for change in gather(place, scan=walked).files_changed] == ["README.md"]
    after = index.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_git_is_not_asked_whether_it_ignores_what_it_lists_as_untracked(opened: Callable[[], Place]) -> None:
    """New files and their folders are kept as the evidence lists them; about others git is asked, and ignores them."""
    place = opened()
    (place.worktree / ".gitignore").write_text("*.log\n")
    _settle(place)
    (place.worktree / "new" / "folder").mkdir(parents=True)
    for name in ("new/folder/kept.py", "new/folder/kept.log", "new/left.log"):
        (place.worktree / name).write_text("new\n")
    walked = scan(place, ignored_limit_bytes=LIMIT_BYTES)
    status = gather(place, scan=walked).status
    assert status is not None
    assert status.untracked_paths() >= {b"new", b"new/folder", b"new/folder/kept.py"}
    listed = replace(walked, untracked=status.untracked_paths() | {b"new/folder/kept.log"})
    tree = _snapshot(place, scan=listed).tree
    kept = git(place.vault, "ls-tree", "-r", "--name-only", tree, "new").splitlines()
    assert kept == ["new/folder/kept.log", "new/folder/kept.py"]


def test_a_walk_from_before_another_snapshot_does_not_count(opened: Callable[[], Place]) -> None:
    """What was written after the walk and is in a snapshot already is in the one that is taken with the walk."""
    place = opened()
    walked = scan(place, ignored_limit_bytes=LIMIT_BYTES)
    (place.worktree / "new.py").write_text("new\n")
    between = _snapshot(place)
    assert _snapshot(place, scan=walked).content == between.content


@pytest.mark.parametrize("content", [b"", b"\x93", b"not a note"])
def test_a_torn_note_is_no_note(opened: Callable[[], Place], content: bytes) -> None:
    """A note that cannot be read is as one that was never written: git is asked."""
    place = opened()
    (place.records / "standing").write_bytes(content)
    (place.worktree / "new.py").write_text("new\n")
    _settle(place)


def test_a_standing_counts_for_its_snapshot_and_its_head_alone(opened: Callable[[], Place]) -> None:
    """Another snapshot or another HEAD is another moment."""
    place = opened()
    known = WorktreeStatus(place.base_sha, ())
    save_worktree_status(place, "a" * 40, known)
    assert load_worktree_status(place, "a" * 40, place.base_sha) == known
    assert load_worktree_status(place, "b" * 40, place.base_sha) is None
    assert load_worktree_status(place, "a" * 40, "c" * 40) is None
