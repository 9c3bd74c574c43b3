"""The changed files in git's output."""

import pytest

from septet.contracts.facts import FileChange
from septet.git.worktree.view import file_changes, read_name_status, read_status


@pytest.mark.parametrize(("codes", "change"), [(b"C.", ("create", b"new")), (b"CD", None)])
def test_a_copy_is_a_new_file(codes: bytes, change: object) -> None:
    """A copy that git reports is a new file, and no change if the file was removed."""
    facts = b" N... 100644 100644 100644 " + b"1" * 40 + b" " + b"2" * 40
    (entry,) = read_status(b"2 " + codes + facts + b" C100 new\0old\0")
    assert change == entry.change


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
