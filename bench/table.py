"""The table: one line for each figure, green where it reaches its target."""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from bench.figure import Figure

_VERDICTS = {True: Text("reached", style="green"), False: Text("missed", style="bold red"), None: Text("")}


def table(figures: Mapping[str, Sequence[Figure]], title: str) -> Table:
    """Return the figures of each group as a table."""
    drawn = Table(title=title, title_justify="left")
    drawn.add_column("figure")
    for heading in ("measured", "target"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    drawn.add_column("", no_wrap=True)
    drawn.add_column("beside it", justify="right")
    drawn.add_column("ratio", justify="right", no_wrap=True)
    for group, lines in figures.items():
        drawn.add_section()
        for line in lines:
            drawn.add_row(*_row(group, line))
    return drawn


def _row(group: str, figure: Figure) -> tuple[Text | str, ...]:
    target = "" if figure.target is None else f"{_sign(figure)} {_number(figure.target)} {figure.unit}"
    beside = "" if figure.baseline is None else f"{_number(figure.baseline)} {figure.unit}: {figure.beside}"
    return (
        Text(f"{group}: {figure.name}").append(f"\n  {figure.note}" if figure.note else "", style="dim"),
        "" if figure.value is None else f"{_number(figure.value)} {figure.unit}",
        target,
        _VERDICTS[figure.passed],
        beside,
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
    )


def _sign(figure: Figure) -> str:
    return "≤" if figure.bound == "at most" else "≥"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
