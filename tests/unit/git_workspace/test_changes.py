"""The changed files in git's output."""

from septet.contracts.facts import FileChange
from septet.git.worktree.changes import file_changes


def test_changes_are_sorted_and_shown() -> None:
    r"""Changes are in the order of their paths, and bytes that are not UTF-8 are shown as `\xNN`."""
    changes = file_changes([("create", b"z\xff.txt"), ("delete", "ä b".encode()), ("create", b"z\xff.txt")])

    assert (
        FileChange(path="z\\xff.txt", operation="create"),
        FileChange(path="ä b", operation="delete"),
    ) == changes
