import pytest

from septet.system.text import cut, cut_bytes, cut_front, cut_line, name_some, table_cell


def test_of_many_names_some_are_told_and_the_others_counted() -> None:
    """A list of names shows the first names and the number of the others."""
    assert [name_some(names, 2) for names in ([], ["a"], ["a", "b"], ["a", "b", "c", "d"])] == [
        "", "a", "a, b", "a, b and 2 more",
    ]  # fmt: skip


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
