"""Record `septet demo` as docs/pictures/demo.cast, in asciinema's format, and as demo.svg, an animation of it.

It runs in a pseudo-terminal, on a state directory of its own that is removed at the end. The SVG needs no script
and no network. It shows each frame for its recorded time, and the last one a while longer before it repeats.
"""

import fcntl
import html
import json
import os
import pty
import shutil
import struct
import sys
import termios
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyte

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURES: Final = ROOT / "docs" / "pictures"
STATE: Final = Path("/tmp/septet")  # noqa: S108 -- it is seen in the recording
COMMAND: Final = ("septet", "demo", "--scenario", "malformed")
COLUMNS, ROWS = 100, 22
START_SECONDS: Final = 1.0
"""The seconds for which the recording shows the server's start, which prints nothing."""
LAST_SECONDS: Final = 6.0
COLUMN_WIDTH, LINE_HEIGHT, FONT_SIZE = 8.4, 18, 14
COLOURS: Final = {
    "default": "#d0d7de", "red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341", "blue": "#79c0ff",
    "magenta": "#d2a8ff", "cyan": "#76e3ea", "white": "#ffffff", "black": "#8b949e",
}  # fmt: skip
"""Colours on a dark ground, each with a contrast of at least 4.5; `brown` is the terminal's name of yellow."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The terminal's content for some time."""

    at: float
    """The seconds since the beginning."""
    lines: tuple[tuple[tuple[str, str, bool], ...], ...]
    """For each line its runs of characters with the same look: text, colour, bold."""


def main() -> int:
    """Record, and write both files; return the demo's exit code."""
    shutil.rmtree(STATE, ignore_errors=True)
    try:
        events, code = record()
    finally:
        shutil.rmtree(STATE, ignore_errors=True)
    begin = events[0][0] - START_SECONDS
    prompt = f"$ {' '.join(COMMAND)}\r\n"
    events = [(0.0, prompt), *((round(at - begin, 3), text) for at, text in events)]
    header = {
        "version": 2,
        "width": COLUMNS,
        "height": ROWS,
        "title": " ".join(COMMAND),
        "env": {"TERM": "xterm-256color"},
    }
    cast = [json.dumps(header), *(json.dumps([at, "o", text], ensure_ascii=False) for at, text in events)]
    (PICTURES / "demo.cast").write_text("\n".join(cast) + "\n", encoding="utf-8")
    (PICTURES / "demo.svg").write_text(svg_of(list(frames_of(events))), encoding="utf-8")
    return code


def record() -> tuple[list[tuple[float, str]], int]:
    """Run the command in a terminal; return its output with seconds, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ.update({"PATH": path, "TERM": "xterm-256color", "SEPTET_STATE_DIR": str(STATE)})
        os.execvp(COMMAND[0], COMMAND)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    began, events = time.monotonic(), []
    while text := read(terminal):
        events.append((time.monotonic() - began, text))
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return events, os.waitstatus_to_exitcode(status)


def read(terminal: int) -> str:
    """Return the terminal's next output; empty once its program has ended."""
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:
        return ""


def frames_of(events: Iterable[tuple[float, str]]) -> Iterator[Frame]:
    """Play the events on a terminal, and yield each changed content."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(screen)
    before: tuple[object, ...] = ()
    for at, text in events:
        stream.feed(text)
        lines = tuple(tuple(runs_of(screen, row)) for row in range(ROWS))
        if lines != before:
            before = lines
            yield Frame(at, lines)


def runs_of(screen: pyte.Screen, row: int) -> Iterator[tuple[str, str, bool]]:
    """Yield the runs of a line, without the blanks at its end."""
    cells = [screen.buffer[row][column] for column in range(COLUMNS)]
    while cells and cells[-1].data == " ":
        cells.pop()
    begin = 0
    for end in range(1, len(cells) + 1):
        look = (cells[begin].fg, cells[begin].bold)
        if end == len(cells) or (cells[end].fg, cells[end].bold) != look:
            yield "".join(cell.data for cell in cells[begin:end]), str(look[0]), bool(look[1])
            begin = end


def svg_of(frames: list[Frame]) -> str:
    """Return a picture that plays the frames in a loop."""
    total = frames[-1].at + LAST_SECONDS
    width, height = COLUMNS * COLUMN_WIDTH + 24, ROWS * LINE_HEIGHT + 24
    styles, groups = [], []
    for number, frame in enumerate(frames):
        end = frames[number + 1].at if number + 1 < len(frames) else total
        first, last = 100 * frame.at / total, 100 * end / total
        shown = f"0%{{opacity:0}}{first:.3f}%{{opacity:1}}{last:.3f}%{{opacity:0}}100%{{opacity:0}}"
        if number == 0:
            shown = f"0%{{opacity:1}}{last:.3f}%{{opacity:0}}100%{{opacity:0}}"
        elif number + 1 == len(frames):
            shown = f"0%{{opacity:0}}{first:.3f}%{{opacity:1}}100%{{opacity:1}}"
        styles.append(
            f"@keyframes f{number}{{{shown}}}#f{number}{{animation:f{number} {total:.2f}s step-end infinite}}"
        )
        groups.append(
            f'<g id="f{number}">{"".join(text_of(row, line) for row, line in enumerate(frame.lines))}</g>'
        )
    shown_last = f"#f{len(frames) - 1}{{opacity:1}}"
    still = f"@media (prefers-reduced-motion:reduce){{g{{animation:none!important;opacity:0}}{shown_last}}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        f'aria-label="A terminal in which {html.escape(" ".join(COMMAND))} runs">'
        f"<style>text{{font:{FONT_SIZE}px ui-monospace,Menlo,Consolas,monospace;white-space:pre}}"
        f".b{{font-weight:bold}}{''.join(styles)}{still}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>{"".join(groups)}</svg>\n'
    )


def text_of(row: int, line: tuple[tuple[str, str, bool], ...]) -> str:
    """Return a line of a frame; each run starts in its own column, whatever the font's width."""
    if not line:
        return ""
    spans, column = [], 0
    for text, colour, is_bold in line:
        place, length = 12 + column * COLUMN_WIDTH, len(text) * COLUMN_WIDTH
        kind, fill = ' class="b"' if is_bold else "", COLOURS.get(colour, COLOURS["default"])
        spans.append(
            f'<tspan x="{place:.1f}" textLength="{length:.1f}" fill="{fill}"{kind}>{html.escape(text)}</tspan>'
        )
        column += len(text)
    return f'<text y="{12 + (row + 1) * LINE_HEIGHT - 4}">{"".join(spans)}</text>'


if __name__ == "__main__":
    sys.exit(main())
