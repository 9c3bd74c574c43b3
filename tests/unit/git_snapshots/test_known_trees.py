"""A worktree that was walked over before: what the kernel tells of, and nothing else, is looked at again."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.git.snapshots.known_trees import KnownTrees
from septet.git.snapshots.survey import OPEN_FOLDER, Survey, look_at
from septet.system.durable import close_after

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells of writing on Linux")

FOLDERS: Final = ("", "a", "a/b", "a/b/c", "d", "e", "e/b", ".git", ".git/refs")
NAMES: Final = ("x", "y", "b", "c")


@pytest.fixture
def trees() -> Iterator[KnownTrees]:
    """Give what remembers walks."""
    known = KnownTrees()
    yield known
    known.close()


def write(root: Path, path: str, _: str) -> None:
    """Write a file, or append to it."""
    with (root / path).open("a") as file:
        file.write("more")


def make(root: Path, path: str, _: str) -> None:
    """Make a folder with a file in it."""
    (root / path).mkdir()
    (root / path / "x").write_text("new")


def remove(root: Path, path: str, _: str) -> None:
    """Remove a file, or a folder with all below it."""
    if (root / path).is_dir() and not (root / path).is_symlink():
        shutil.rmtree(root / path)
    else:
        (root / path).unlink()


def rename(root: Path, path: str, other: str) -> None:
    """Give a file or a folder another name."""
    (root / path).rename(root / other)


def replace_folder(root: Path, path: str, _: str) -> None:
    """Put a folder of the same names in a folder's place; its inode may be the same one."""
    shutil.copytree(root / path, root / "copy")
    shutil.rmtree(root / path)
    (root / "copy").rename(root / path)


def link(root: Path, path: str, other: str) -> None:
    """Give a file a second name."""
    os.link(root / path, root / other)


def point(root: Path, path: str, other: str) -> None:
    """Make a symbolic link."""
    (root / path).symlink_to(other)


def change_mode(root: Path, path: str, _: str) -> None:
    """Turn a permission bit of a file or a folder over."""
    (root / path).chmod((root / path).stat().st_mode ^ 0o010)


def touch(root: Path, path: str, _: str) -> None:
    """Set a time that is long past."""
    os.utime(root / path, ns=(1, 1))


ACTS: Final[tuple[Callable[[Path, str, str], None], ...]] = (
    write,
    make,
    remove,
    rename,
    replace_folder,
    link,
    point,
    change_mode,
    touch,
)
PATHS: Final = st.builds(os.path.join, st.sampled_from(FOLDERS), st.sampled_from(NAMES))


def lay_out(root: Path) -> None:
    """Make the folders, with a file in each."""
    for folder in FOLDERS:
        (root / folder).mkdir(exist_ok=True)
        (root / folder / "x").write_text(folder)


def survey_of(root: Path, known: KnownTrees) -> Survey:
    """Look at a tree that may be known."""
    with close_after(os.open(root, OPEN_FOLDER)) as folder:
        return known.look_at(root, folder)


def whole_survey(root: Path) -> Survey:
    """Walk over a tree."""
    with close_after(os.open(root, OPEN_FOLDER)) as folder:
        return look_at(folder)


@pytest.mark.hypothesis
@given(
    rounds=st.lists(st.lists(st.tuples(st.sampled_from(ACTS), PATHS, PATHS), max_size=4), min_size=1, max_size=6)
)
def test_a_look_again_sees_what_a_whole_walk_sees(
    rounds: list[list[tuple[Callable[[Path, str, str], None], str, str]]],
) -> None:
    """Whatever is written, removed, renamed, linked and put in another's place between two looks."""
    known = KnownTrees()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root)
        survey_of(root, known)
        for acts in rounds:
            for act, path, other in acts:
                try:
                    act(root, path, other)
                except OSError:
                    continue  # what is not there, or is something else, is left alone
            seen, is_so = survey_of(root, known), whole_survey(root)
            assert seen.looks == is_so.looks
            assert seen.closed == is_so.closed
    known.close()


def test_only_what_was_written_in_is_listed_again(tmp_path: Path, trees: KnownTrees) -> None:
    """The look of a folder in which nothing has happened is the very one of the walk before."""
    lay_out(tmp_path)
    before = survey_of(tmp_path, trees)
    (tmp_path / "a" / "b" / "x").write_text("changed")
    after = survey_of(tmp_path, trees)
    again = {path for path in after.looks if after.looks[path] is not before.looks[path]}
    assert {path for path in again if not path.startswith(b".git")} == {b"a/b"}


def test_a_folder_that_was_renamed_together_with_those_above_it_is_another_one(
    tmp_path: Path, trees: KnownTrees
) -> None:
    """Folders of the same names in the place of those that have moved are walked over."""
    lay_out(tmp_path)
    survey_of(tmp_path, trees)
    (tmp_path / "a").rename(tmp_path / "z")
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    assert survey_of(tmp_path, trees).looks == whole_survey(tmp_path).looks
    (tmp_path / "z" / "b" / "c" / "x").write_text("written where it has moved to")
    assert survey_of(tmp_path, trees).looks == whole_survey(tmp_path).looks


def test_a_folder_that_was_gone_at_one_look_is_walked_over_when_it_is_back(
    tmp_path: Path, trees: KnownTrees
) -> None:
    """Also where it has the inode that it had: one that is removed and made anew often gets the same one."""
    tree, elsewhere = tmp_path / "tree", tmp_path / "elsewhere"
    tree.mkdir()
    lay_out(tree)
    survey_of(tree, trees)
    (tree / "a").rename(elsewhere)
    assert survey_of(tree, trees).looks == whole_survey(tree).looks
    elsewhere.rename(tree / "a")
    assert survey_of(tree, trees).looks == whole_survey(tree).looks
    write(tree, "a/b/x", "")
    assert survey_of(tree, trees).looks == whole_survey(tree).looks


def test_a_write_by_a_files_second_name_is_seen(tmp_path: Path, trees: KnownTrees) -> None:
    """With hard links in it a tree is walked over each time: the kernel tells of one of a file's folders alone."""
    lay_out(tmp_path)
    survey_of(tmp_path, trees)
    (tmp_path / "d" / "y").hardlink_to(tmp_path / "a" / "x")
    assert survey_of(tmp_path, trees).looks == whole_survey(tmp_path).looks
    with (tmp_path / "d" / "y").open("a") as file:
        file.write("by its second name")
    assert survey_of(tmp_path, trees).looks == whole_survey(tmp_path).looks


def test_more_trees_than_are_kept_are_told_apart(tmp_path: Path, trees: KnownTrees) -> None:
    """Those that were looked at longest ago are walked over again, and none is taken for another."""
    roots = [tmp_path / str(number) for number in range(20)]
    for root in roots:
        root.mkdir()
        lay_out(root)
        survey_of(root, trees)
    for root in roots:
        write(root, "a/x", "")
        assert survey_of(root, trees).looks == whole_survey(root).looks


def test_a_tree_of_more_folders_than_are_watched_is_walked_over(tmp_path: Path, trees: KnownTrees) -> None:
    """The kernel has so many watches for a user, and a tree takes no more of them than its share."""
    lay_out(tmp_path)
    folders = [tmp_path / "d" / f"{number:04}" for number in range(4100)]
    for folder in folders:
        folder.mkdir()
    survey_of(tmp_path, trees)
    (folders[0] / "x").write_text("new")
    (folders[-1] / "x").write_text("new")
    assert survey_of(tmp_path, trees).looks == whole_survey(tmp_path).looks
