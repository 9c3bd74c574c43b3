"""The screens of lists and mistakes, as `tests/data/screens.txt` has them.

If the file is missing, the tests write it and fail once: read the difference before you commit it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.repositories import make_origin
from fakes.septet_command import Septet
from fakes.terminal import terminal

pytestmark = pytest.mark.faces

DATA = Path(__file__).parents[1] / "data" / "screens.txt"
LONG = "Supercalifragilisticexpialidocious" * 3
"""One word, so that the place of the cut does not matter."""
GATE = "wo-0123456789abcdef0123"
SCREENS = [
    (60, "list"),
    (0, "list"),
    (60, "board"),
    (60, "show wo-nobody"),
    (60, f"retry {GATE}"),
    (100, f"cancel {GATE}x"),
    (100, "run --repo ORIGIN --title T --agent clade"),
    (100, "run --repo ORIGIN --title T --step biuld_plan.turns=3"),
    (100, f"move {GATE} reveiw"),
]


@pytest.fixture(scope="module")
def screens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Septet]:
    """A machine with a work order in review, and a work order that waits for its approval."""
    septet = Septet(tmp_path_factory.mktemp("screens"))
    origin = make_origin(septet.root / "origin", "app.git")
    origin.push({"app.py": "print('hello')\n"})
    with septet.up():
        first = septet("run", "--repo", origin.bare, "--title", "Say more", "--id", "wo-1", "--wait", "--json")
        assert first.code == 0, first
        words = ("run", "--repo", origin.bare, "--title", LONG, "--id", GATE, "--approve-plan", "--json")
        assert septet(*words).code == 0
        septet.wait_for_order(GATE, "waiting")
        yield septet


def screen_of(septet: Septet, columns: int, words: str) -> str:
    """Return a command's output in a terminal of this width, or in a pipe for 0 columns."""
    argv = words.replace("ORIGIN", str(septet.root / "origin" / "app.git")).split()
    if not columns:
        ended = septet(*argv)
        shown = ended.out + ended.err
    else:
        with terminal(septet, *argv, cwd=septet.root, COLUMNS=str(columns)) as screen:
            _, shown = screen.end()
        assert max(map(len, shown.splitlines())) <= columns, shown
    shown = re.sub(r"\b[0-9]+ (s|min)\b", "AGE", shown.replace(str(septet.root), "/machine"))
    # The shown length of a title depends on the age next to the title.
    shown = re.sub(r"\bSuper[A-Za-z]*…", "Super…", shown)
    return "\n".join(re.sub(" {2,}", "  ", line).rstrip() for line in shown.splitlines())


def kept() -> dict[str, str]:
    """Return the screens of the file."""
    parts = re.split(r"^=== (.*)\n", DATA.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name: text.rstrip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}


def test_screens_are_as_they_were(screens: Septet) -> None:
    """Each command shows the screen of the file, with whole ids and commands."""
    seen = {f"septet {words} ({columns})": screen_of(screens, columns, words) for columns, words in SCREENS}
    if not DATA.exists():
        DATA.write_text("".join(f"=== {name}\n{text}\n\n" for name, text in seen.items()), encoding="utf-8")
        pytest.fail(f"{DATA} was written")
    assert seen == kept()
    for name, text in seen.items():
        assert GATE in text or "board" not in name, text
