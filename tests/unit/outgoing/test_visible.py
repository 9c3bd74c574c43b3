"""An agent gets only the part of a text that a page shows."""

import time

import pytest

from septet.outgoing.visible import visible_line, visible_text

STAYS = (
    "# A title\n\nWords, *more*, `code` and <b>HTML</b>.",
    "| a | b |\n| - | - |\n| `x|y` | 1 |",
    "```python\nprint('<!-- shown as code -->')\n```",
    "`<!-- shown as code -->`",
    "- [ ] one\n- [x] two\n\n  ![](shot.png)",
    "A note[^1].\n\n[^1]: It is shown.",
    "\U0001f469\u200d\U0001f4bb and \u2764\ufe0f and 1\ufe0f\u20e3",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "\u0915\u094d\u200d\u0937",
    "See [the docs](https://example.org) and [this][].",
    "<details><summary>More</summary>\n\nShown on a click.\n\n</details>",
    "if a <!-- b, it is shown",
)


@pytest.mark.parametrize("text", STAYS)
def test_what_people_see_stays(text: str) -> None:
    """Code, tables, emojis and joiners of scripts stay unchanged."""
    assert visible_text(text) == text


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("a\n\n<!-- b\n\nc", "a"),
        ("<div>\n<!-- b\n</div>\n\nc", "<div>"),
        ("a\u200bb\u2060c\u00ad", "abc"),
        ("a&#8203;&#x62;", "ab"),
        ("![a [b] c](p.png)", "![](p.png)"),
        ("[a][do it]\n\n[do it]: u", "[a](u)"),
    ],
)
def test_what_people_do_not_see_goes(text: str, visible: str) -> None:
    """Comments, titles, labels and invisible characters are removed, whatever hides them."""
    assert visible_text(text) == visible


def test_a_link_that_is_used_keeps_its_address() -> None:
    """A link's definition keeps its address and loses its title, which no page shows."""
    assert visible_text("[a]\n\n[a]: <http://b> 'c'").split() == ["[a]", "[a]:", "http://b"]


def test_a_title_is_one_line_of_what_is_seen() -> None:
    """A title becomes one line and keeps HTML comments, since no forge reads a title as Markdown."""
    assert visible_line("a\u200b <!-- b -->\n c") == "a <!-- b --> c"


@pytest.mark.parametrize(
    "pump", ["![", "![[a]", "<!-- ", "[x]: a\n", "[a][b]", "<a ", "&#8203;", "[a](", "<div>\n<!--\n\n"]
)
def test_a_long_text_takes_time_in_proportion(pump: str) -> None:
    """Four times the text takes at most about four times as long."""
    text = pump * (40_000 // len(pump))

    def seconds(said: str) -> float:
        before = time.thread_time()
        visible_text(said)
        return time.thread_time() - before

    assert min(seconds(text * 4) for _ in range(3)) < 12 * seconds(text) + 0.5
