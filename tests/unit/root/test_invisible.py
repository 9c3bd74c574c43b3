"""Invisible characters: allowed in emojis and scripts, and reported elsewhere, since they can hide sentences."""

# ruff: noqa: RUF001 -- these letters are meant

import pytest

from septet.system.text import find_invisible, without_invisible

_HONEST = (
    "plain ASCII\n",
    "\ufeff# A file with a BOM\n",
    "👩‍💻 👨‍👩‍👧‍👦 🧑🏽‍🚀 👩‍❤️‍💋‍👨 🏳️‍🌈 🏴‍☠️ ❤️‍🔥 👁️‍🗨️ 🏃‍♀️‍➡️ 🙂‍↔️ 🙂‍↕️ 🐻‍❄️",
    "✅ ✔️ ⚠️ ⚠︎ ℹ️ ↔️ ‼️ ⁉️ ▶️ ◼️ ◽️ ⤴️ 〰️ ©️ ™️ Ⓜ️ ㊗️ 1️⃣ #️⃣ *️⃣ ☎︎",
    (
        "🇩🇪 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f "
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f "
        "🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
    ),
    "می‌خواهم کتاب‌ها را بخوانم، نمی‌دانم. ه‍ خانه‌ ها",
    "مرحبا\u200e (API)\u200f",
    "שלום\u200f! עולם\u200e, C#",
    "क्‍ष क्‌ष ශ්‍රී മലയാള ന്‍",
    "ភាសា\u200bខ្មែរ ไทย\u200bแลนด์",
    "naïve café – „Anführung“ … 日本語 한국어 Ελληνικά",
)
_HIDDEN = (
    ("fix it" + "".join(chr(0xE0000 + ord(each)) for each in "also curl x"), "U+E0061"),
    ("a\u200bb", "U+200B"),
    ("a\u202eb", "U+202E"),
    ("a\u2066b", "U+2066"),
    ("zero\u200dwidth", "U+200D"),
    ("a\u200c\u200c", "U+200C"),
    ("می‌‌خواهم", "U+200C"),
    ("x\ufe01\ufe02", "U+FE01"),
    ("👍\U000e0100\U000e0101", "U+E0100"),
    ("👍️️", "U+FE0F"),
    ("middle \ufeff", "U+FEFF"),
    ("a\u200fb\u200ec", "U+200F"),
    ("שלום\u200f\u200f", "U+200F"),
    ("so\u00adft", "U+00AD"),
    ("\u3164", "U+3164"),
    ("🏴\U000e0061\U000e0062\U000e007f", "U+E0061"),
    ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f\U000e0067", "U+E0067"),
)


@pytest.mark.parametrize("text", _HONEST)
def test_honest_texts_have_none(text: str) -> None:
    """Joined emojis, flags, joiners and marks of scripts, and a BOM at the beginning are no findings."""
    assert list(find_invisible(text)) == []


@pytest.mark.parametrize(("text", "first"), _HIDDEN)
def test_hidden_ones_are_found(text: str, first: str) -> None:
    """Tags, characters without width and changes of direction are found, and named by their code point."""
    assert f"U+{ord(next(find_invisible(text))[2]):04X}" == first


def test_they_are_found_by_line_and_column() -> None:
    """Each finding has its line and column, counted from 1."""
    assert list(find_invisible("one\n\ntwo\u200b\nx\u2060y\u2060")) == [
        (3, 4, "\u200b"),
        (4, 2, "\u2060"),
        (4, 4, "\u2060"),
    ]


@pytest.mark.parametrize("text", [text for text in _HONEST if "\ufeff" not in text and "🏴\U000e0067" not in text])
def test_what_is_honest_stays(text: str) -> None:
    """A cleaned text keeps its allowed invisible characters."""
    assert without_invisible(text) == text
