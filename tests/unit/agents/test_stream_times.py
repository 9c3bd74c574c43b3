from pathlib import Path

from septet.agents.runs.folders import Run
from septet.agents.runs.logs import Written, note_written, pieces, times_written

NOON = 1_735_732_800.0
"""2025-01-01T12:00:00Z."""


def test_what_was_noted_is_read_again(tmp_path: Path) -> None:
    """The notes are read as they were written, and a half-written note is skipped."""
    run = Run(tmp_path, None)
    for position, seconds in ((10, NOON), (30, NOON + 1), (30, NOON + 60), (40, NOON + 61)):
        note_written(run, position, seconds)
    with (tmp_path / "stdout.times").open("a", encoding="ascii") as notes:
        notes.write("cut")
    assert times_written(run) == [
        Written(10, NOON), Written(30, NOON + 1), Written(30, NOON + 60), Written(40, NOON + 61),
    ]  # fmt: skip


def test_a_full_disk_holds_nobody_up(tmp_path: Path) -> None:
    """If no note can be written, no error is raised and no time is known."""
    run = Run(tmp_path / "gone", None)
    note_written(run, 10, NOON)
    assert times_written(run) == []


def test_a_chunk_is_cut_where_times_were_noted() -> None:
    """Each part of a chunk has the time of its note; the part after the last note has the given time."""
    times = [Written(2, NOON), Written(5, NOON + 1), Written(5, NOON + 9)]
    first, second = "2025-01-01T12:00:00.000Z", "2025-01-01T12:00:01.000Z"
    assert list(pieces(b"abcdefg", 0, times, "now")) == [(b"ab", first), (b"cde", second), (b"fg", "now")]
    assert list(pieces(b"defg", 3, times, "")) == [(b"de", second), (b"fg", "")]
