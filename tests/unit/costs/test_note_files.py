"""Notes of costs on disk, and when they are due, without a read of any note."""

import os
from pathlib import Path

from septet.budgets.turn_notes import NoteFiles
from septet.contracts.amounts import Spending
from septet.contracts.costs import CostNote

LONG_AGO, SOME_DAY = 0.0, 1e12


def note(key: str, *, completes: bool = False) -> CostNote:
    return CostNote(
        project="o/r", order_id="wo-1", key=key, step="build_plan", agent="claude", use=Spending(usd=1.0),
        week="2026-W40", completes=completes,
    )  # fmt: skip


def test_notes_are_due_when_one_is_old_and_at_once_when_a_work_order_is_completed(tmp_path: Path) -> None:
    """A note is due when it is old, or when it completes a work order, until it is removed."""
    notes = NoteFiles(tmp_path / "costs")
    assert not notes.is_due(SOME_DAY)
    notes.note(note("1"))
    assert (notes.is_due(LONG_AGO), notes.is_due(SOME_DAY)) == (False, True)
    notes.note(note("0", completes=True))
    assert notes.is_due(LONG_AGO)
    taken = notes.take()
    assert {each.key for _, each in taken} == {"1", "0"}
    assert notes.is_due(LONG_AGO)
    for path, _ in taken:
        notes.forget(path)
    assert not notes.is_due(SOME_DAY)


def test_notes_are_told_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    """Notes come in the order in which they were written, not by name."""
    notes = NoteFiles(tmp_path / "costs")
    for age, key in enumerate(("b", "a", "c")):
        notes.note(note(key))
        os.utime(notes.root / f"{key}.json", (1000 - age, 1000 - age))
    assert [each.key for _, each in notes.take()] == ["c", "a", "b"]
