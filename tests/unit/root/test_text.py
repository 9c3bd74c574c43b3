import pytest

from septet.system.text import cut, cut_bytes, cut_front, cut_line, table_cell


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (cut("abcd", 4), "abcd"),
        (cut("abcde", 4), "abc…"),
        (cut_front("abcd", 4), "abcd"),
        (cut_front("abcde", 4), "…cde"),
        (cut_bytes("aéé", 4), "aé"),
        (cut_line("a\n b", 9), "a b"),
        (cut_line("éééé", 7), "éé…"),
        (cut_line("a\x00b" * 9, 6), "a b…"),
        (table_cell("a|b `c`\nd", 7), "a¦b 'c…"),
    ],
)
def test_a_text_is_cut_to_its_limit(shown: str, expected: str) -> None:
    """A text within its limit stays whole; a longer text is cut, with an ellipsis within the limit."""
    assert shown == expected
