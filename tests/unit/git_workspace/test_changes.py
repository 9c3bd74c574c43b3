"""The changed files in git's output."""

import pytest

from septet.contracts.facts import FileChange
from septet.git.worktree.changes import file_changes, read_name_status, read_status

_FACTS = b"N... 100644 100644 100644 " + b"1" * 40 + b" " + b"2" * 40


@pytest.mark.parametrize(
    ("codes", "operation"),
    [
        (b".M", "modify"),
        (b"MM", "modify"),
        (b".T", "modify"),
        (b"A.", "create"),
        (b"AM", "create"),
        (b".D", "delete"),
        (b"MD", "delete"),
    ],
)
def test_index_and_worktree_are_read_as_one_change(codes: bytes, operation: str) -> None:
    """The change from HEAD to the index and the change from the index to the worktree become one operation."""
    (entry,) = read_status(b"1 " + codes + b" " + _FACTS + b" src/a b.py\0")

    assert (operation, b"src/a b.py") == entry.change


def test_a_file_that_came_and_went_is_no_change() -> None:
    """A file that was staged as new and then removed is no change."""
    (entry,) = read_status(b"1 AD " + _FACTS + b" a\0")

    assert entry.change is None


@pytest.mark.parametrize(
    ("record", "change"),
    [
        (b"2 R. " + _FACTS + b" R100 new\0old\0", ("rename", b"new")),
        (b"2 RM " + _FACTS + b" R090 new\0old\0", ("rename", b"new")),
        (b"2 RD " + _FACTS + b" R100 new\0old\0", ("delete", b"old")),
        (b"2 C. " + _FACTS + b" C100 new\0old\0", ("create", b"new")),
        (b"2 CD " + _FACTS + b" C100 new\0old\0", None),
        (b"? new\0", ("create", b"new")),
        (b"u UU N... 1 2 3 4 a b c src/a.py\0", ("modify", b"src/a.py")),
    ],
)
def test_renames_copies_conflicts_and_new_files_are_read(record: bytes, change: object) -> None:
    """Renames, copies, new files and conflicts have an operation and a path."""
    (entry,) = read_status(record)

    assert change == entry.change


def test_headers_and_ignored_files_are_passed_over() -> None:
    """Headers and ignored files give no entry, and a rename's second path does not shift the next records."""
    output = b"# branch.oid x\0! dist/a\0" + b"2 R. " + _FACTS + b" R100 new\0? old\0? other\0"

    assert [entry.path for entry in read_status(output)] == [b"new", b"other"]


def test_name_status_is_read() -> None:
    """Each letter of `git diff --name-status -z` has its operation; a copy is a new file."""
    output = b"A\0a\0D\0d\0M\0m\0T\0t\0U\0u\0R100\0from\0r\0C075\0from\0c\0"

    assert list(read_name_status(output)) == [
        ("create", b"a"),
        ("delete", b"d"),
        ("modify", b"m"),
        ("modify", b"t"),
        ("modify", b"u"),
        ("rename", b"r"),
        ("create", b"c"),
    ]


def test_changes_are_sorted_and_shown() -> None:
    r"""Changes are in the order of their paths, and bytes that are not UTF-8 are shown as `\xNN`."""
    changes = file_changes([("create", b"z\xff.txt"), ("delete", "ä b".encode()), ("create", b"z\xff.txt")])

    assert (
        FileChange(path="z\\xff.txt", operation="create"),
        FileChange(path="ä b", operation="delete"),
    ) == changes
