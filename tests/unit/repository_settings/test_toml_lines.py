"""The line of a key in a TOML text."""

import time

import pytest

from septet.repository_file import line_of

TEXT = '''\
# a comment
title = "x"
list = [
  1,
  2,
]
text = """
[not.a.table]
fake = 1
"""

[a]
b.c = 1
[a.d]
"quoted key" = { inner = 1, other = 2 }
[[many]]
x = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (["title"], 2),
        (["list"], 3),
        (["list", 1], 3),
        (["text"], 7),
        (["a"], 12),
        (["a", "b", "c"], 13),
        (["a", "d"], 14),
        (["a", "d", "quoted key"], 15),
        (["a", "d", "quoted key", "other"], 15),
        (["many"], 16),
        (["not"], 1),
        (["a", "zzz"], 12),
    ],
)
def test_a_key_is_found_where_its_statement_begins(path: list[str | int], line: int) -> None:
    """A key has the first line of its statement, and an unknown key has its table's line."""
    assert line_of(TEXT, path) == line


def test_a_very_long_statement_does_not_hang() -> None:
    """A list of 3000 lines is skipped in less than two seconds, and the next key is found."""
    text = "long = [\n" + "  1,\n" * 3000 + "]\n[limits]\nturns = 1\n"
    started = time.process_time()
    assert line_of(text, ["limits", "turns"]) == 3004
    assert time.process_time() - started < 2.0
