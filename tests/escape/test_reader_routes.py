"""A guest's text does not block the process that serves the page, the API and other work orders."""

import difflib
import json
import re
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from fakes.escape_git import GitMachine, git_machine
from pygments.lexers import get_lexer_for_filename

from clients.page import rendering
from clients.page.changes import review_of
from septet.agents.outcomes.endings import without_result
from septet.agents.outcomes.outcome import ExitRecord
from septet.contracts.host_files import LogEntry
from septet.git.evidence.difference import difference
from septet.system.masking import scrub

SECONDS = 0.5
"""The most seconds of CPU that a reading may take."""
_NOISE = re.compile(r"^(?:\d[\dT:.,Z+-]+ +)?\W*(?:warn|info)\b")
_WEB_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")


def seconds(read: Callable[[], object]) -> float:
    """Return the seconds of CPU of a second call, when all modules are loaded."""
    read()
    began = time.thread_time()
    read()
    return time.thread_time() - began


def read_all(name: str, code: str) -> None:
    """Read a file's code with the lexers that the page once used."""
    list(get_lexer_for_filename(name).get_tokens(code))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitMachine]:
    with git_machine(tmp_path_factory.mktemp("machine")) as made:
        made.open_workspace("of-page")
        yield made


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize(("name", "code"), [("x.cpp", "a" + " " * 12_000), ("x.java", "using " + "a \n" * 4_000)])
def test_no_line_of_a_guests_file_stops_the_page(machine: GitMachine, name: str, code: str) -> None:
    """The page shows the diff at once; the earlier lexers took sixteen times as long for four times the text."""
    assert machine.place is not None
    machine.run(f"open({name!r}, 'w').write({code!r})")
    patch = difference(machine.place, limit_bytes=256 * 1024).patch
    assert name in patch
    assert seconds(lambda: review_of(patch, None)) < SECONDS
    read_all(name, "")  # loads the lexer
    short, long = (seconds(partial(read_all, name, text)) for text in (code[:1_000], code[:4_000]))
    assert long > 7 * short  # linear time would give 4


def test_no_edit_in_a_log_stops_the_page() -> None:
    """The page shows an edit of some hundred lines at once; the standard library's diff takes far longer."""
    old, new = ["a" * (number % 7) for number in range(150)], ["b" + "a" * (number % 5) for number in range(150)]
    call = json.dumps({"old_string": "\n".join(old), "new_string": "\n".join(new)})
    entry = LogEntry(id="1", run="1", step="", agent="", kind="tool_call", text=call, tool="Edit", time="")
    ours = seconds(lambda: rendering.edit_of(entry))
    assert ours < SECONDS
    assert seconds(lambda: list(difflib.ndiff(old, new))) > 20 * ours


@pytest.mark.parametrize(
    ("text", "read", "careless"),
    [
        (
            "1-" + " " * 20_000 + "!",
            lambda text: without_result(ExitRecord(cause="exited", exit_code=1), text, spoke=True),
            _NOISE.search,
        ),
        ("eyJ-" * 20_000, scrub, _WEB_TOKEN.search),
    ],
    ids=["noise on stderr", "tokens in a plan"],
)
def test_no_expression_goes_back_and_forth_in_what_a_guest_prints(
    text: str, read: Callable[[str], object], careless: Callable[[str], object]
) -> None:
    """The worker reads the text at once; the earlier expression took sixteen times as long for four times the text."""
    assert seconds(lambda: read(text)) < SECONDS
    short, long = (seconds(partial(careless, text[:2] + part)) for part in (text[2:4_000], text[2:16_000]))
    assert long > 7 * short
