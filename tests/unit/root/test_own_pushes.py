from dataclasses import replace
from pathlib import Path

import pytest

from septet.git.commits.own_pushes import is_own_push, note_push, pushed_branches
from septet.git.engine.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a place with a folder of records."""
    place = Place("wo-1", tmp_path / "tree", tmp_path / "mirror", tmp_path / "vault", "origin", "main", "0" * 40)
    place.records.mkdir(parents=True)
    return place


def test_only_what_was_noted_is_ours(place: Place) -> None:
    """A commit counts as the work order's own only on the branch for which its push was noted."""
    assert not is_own_push(place, "feat-1", "a" * 40)
    note_push(place, "feat-1", "a" * 40)
    note_push(place, "feat-1", "b" * 40)
    note_push(place, "feat-2", "c" * 40)
    assert is_own_push(place, "feat-1", "a" * 40)
    assert is_own_push(place, "feat-1", "b" * 40)
    assert not is_own_push(place, "feat-2", "a" * 40)


def test_in_a_lane_each_work_order_has_its_own(place: Place) -> None:
    """In a lane the push of a work order does not count for the next work order."""
    first, second = replace(place, visitor="pl-1"), replace(place, visitor="pl-2")
    note_push(first, "feat-1", "a" * 40)
    assert is_own_push(first, "feat-1", "a" * 40)
    assert not is_own_push(second, "feat-1", "a" * 40)
    assert not is_own_push(place, "feat-1", "a" * 40)
    assert pushed_branches(first) == ("feat-1",)
    assert pushed_branches(second) == pushed_branches(place) == ()


def test_noting_a_push_again_changes_nothing(place: Place) -> None:
    """A second note of the same push does not change the file."""
    note_push(place, "feat-1", "a" * 40)
    noted = (place.records / "pushed.json").read_bytes()
    note_push(place, "feat-1", "a" * 40)
    assert (place.records / "pushed.json").read_bytes() == noted
