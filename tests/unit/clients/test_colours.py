"""Coloured code: comments, strings, numbers, keywords and names of each family of languages."""

import pytest

from clients.page.changes import LANGUAGES, language_of, pieces_of, review_of

CASES = {
    "a.py": ('@route("/x")\ndef f(a):\n  """Two\n  lines"""\n  return 0x1F  # "no"', 'f@route s"/x" kdef ff'),
    "a.rs": ("fn f<'a>(c: &'a str) { let x = '\\n'; /* a\n b */ }", "kfn ff klet s'\\n' c/* a\n b */"),
    "a.ts": ("class A { a = `x ${b}\ny`; b = 'it\\'s' } // end", "kclass fA s`x ${b}\ny` s'it\\'s' c// end"),
    "a.yml": ("a: don't # b\nc: true#d", "c# b ktrue"),
    "a.sql": ("SELECT 1 FROM t -- all", "kSELECT m1 kFROM c-- all"),
    "a.html": ('<!-- a -->\n<p class="b">don\'t</p>', "c<!-- a --> k<p k</p"),
    "a.json": ('{"a": [1.5, true]}', 's"a" m1.5 ktrue'),
    "Dockerfile": ("# a\nRUN b", "c# a"),
}


@pytest.mark.parametrize("path", CASES)
def test_each_family_has_its_colours(path: str) -> None:
    """The pieces together are the code, and their classes are as expected."""
    code, begins = CASES[path]
    language = language_of(path)
    assert language is not None
    pieces = list(pieces_of(language, code))
    assert "".join(text for _, text in pieces) == code
    assert " ".join(kind + text for kind, text in pieces if kind).startswith(begins)


@pytest.mark.parametrize("name", LANGUAGES)
def test_what_is_not_closed_ends_somewhere(name: str) -> None:
    """An unclosed string or comment loses no code, because a patch may be cut anywhere."""
    for code in ('"', "'", "`", "/*", "<!--", '"""', "'''", "\\", '"\\', "`\\", "@", "0", "'a", "<a", "a\n"):
        assert "".join(text for _, text in pieces_of(LANGUAGES[name], code)) == code


def patch_of(path: str, *lines: str) -> str:
    """Return a patch that adds a file."""
    added = "".join(f"+{line}\n" for line in lines)
    return f"diff --git a/{path} b/{path}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n{added}"


def test_a_language_that_nobody_has_named_has_none() -> None:
    """A file with an unknown ending has no colours, and its text is escaped."""
    assert language_of("a.unknown") is None
    assert language_of("a") is None
    (file,) = review_of(patch_of("a", "<b>"), None)
    assert file.lines[1].code == "+&lt;b&gt;"
