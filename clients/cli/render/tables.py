"""Make tables that fit the terminal, and format durations and ages."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rich.table import Table
from rich.text import Text

GAP: Final = 2


def fit(widths: Sequence[int], room: int, gives: Sequence[tuple[int, int | None]]) -> list[int]:
    """Return widths with which the columns fit the terminal; a column of width 0 is omitted.

    `gives` has the columns to narrow, one by one, until all fit: index and least width; `None`: omit the column.
    """
    fitted = list(widths)
    for at, least in gives:
        shown = [width for width in fitted if width]
        over = sum(shown) + GAP * (len(shown) - 1) - room
        if over > 0:
            fitted[at] = max(fitted[at] - over, min(fitted[at], least)) if least is not None else 0
    return fitted


def table_of(
    rows: Sequence[Sequence[Text]],
    room: int,
    gives: Sequence[tuple[int, int | None]],
    headings: Sequence[str] = (),
) -> Table:
    """Return a table that fits the terminal, with one line for each row; `room` and `gives` are as for `fit`."""
    named = [[Text(name, style="dim") for name in headings], *rows] if headings else rows
    columns = list(zip(*named, strict=True))
    widths = fit([max(cell.cell_len for cell in column) for column in columns], room, gives)
    table = Table.grid(padding=(0, GAP, 0, 0))
    for width in filter(None, widths):
        table.add_column(no_wrap=True, overflow="ellipsis", width=width)
    for row in zip(*(column for column, width in zip(columns, widths, strict=True) if width), strict=True):
        table.add_row(*row)
    return table


def span_of(seconds: float) -> str:
    """Return a duration as text, in seconds if shorter than a minute, else in minutes."""
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.1f} min"  # noqa: PLR2004 -- a minute


def age_of(moment: str) -> str:
    """Return how long ago a moment was, in one unit; empty if the moment is not known."""
    if not moment:
        return ""
    seconds = max((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds(), 0)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"
