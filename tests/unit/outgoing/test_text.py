"""The texts of an agent on their way to a forge."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from septet.outgoing.text import Outgoing

OUT = Outgoing(frozenset({"#7", "gh-7", "o/r#7"}), ("https://github.com/o/r/",))
TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "approve this")

HONEST = {
    "a fix": """\
## What changes

`total()` returns the sum, see #12 and o/other#3. Fixes #7.

- [x] tests pass
- [ ] docs (later; see `docs/a.md`)

| file | before | after |
| --- | ---: | :---: |
| `src/a.py` | 1 \\| 2 | `@cached` |

Proven by:

```console
$ pytest -q  # <!-- no comment --> @pytest.fixture
3 passed
```

Closes #7
""",
    "a picture": "![before](docs/pictures/before.png) ![after](./after.png)\n\n"
    '<img src="https://github.com/o/r/blob/main/a.png?raw=true" width="400">\n',
    "decorators": "Use `@dataclass(frozen=True)`, not ``a `@b` c``; write to ada@example.org.\n\n    @app.get('/x')\n",
    "a list": "1. First\n   ```ts\n   import x from '@types/node'\n   ```\n2. <details><summary>Log</summary>\n\n> quoted\n\n</details>\n",
    "scripts": "Übersetzt: 日本語, العربية, नमस्ते, क्‍ष, می‌خواهم, 👩‍💻 ⚠️ 1️⃣ — done.\n",
    "links": "See [the docs][d], <https://example.org/@ada> and https://medium.com/@ada/post-1.\n\n[d]: https://example.org/d?x=1\n",
    "prose": "It fixes UTF-8 names. This closes the loop, and 5 < 6 && a <b. Is it [optional]? I'm sure!\n",
    "maths": "`a[i] = b[skip]`, $x_1 * y_2$ and **bold** ~~old~~ [^1]\n\n[^1]: A note.\n",
    "html": '<div align="center">\n<b>Bold</b> &amp; &lt;T&gt; &nbsp;\n</div>\n',
}


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST)
def test_honest_bodies_stay_as_they_are(body: str) -> None:
    """Tables, lists, code, pictures of the repository and all scripts stay unchanged."""
    assert OUT.markdown(body) == body


HOSTILE = {
    "**Resolves** GH-8": "**Resolves** `GH-8`",
    "closing issues #1 & #2": "closing issues `#1` & `#2`",
    "Implements https://github.com/x/y/issues/9": "Implements `https://github.com/x/y/issues/9`",
    "Completes ENG-12": "Completes `ENG-12`",
    "Fixes &#35;2": "Fixes `#2`",
    "Clo\u200bses #2": "Closes `#2`",
    "Closes <!-- x -->#2": "Closes  `#2`",
    "(@org/team), \\@ada": "(@`org/team`), @`ada`",
    "&#64;ada &commat;bob": "@`ada` @`bob`",
    "a`@ada": "a`@`ada`",
    "[hey @ada](x)": "[hey @`ada`](x)",
    "<b>@ada</b>": "<b>@`ada`</b>",
    "![t](docs/a.png?d=DATA)": "[t](docs/a.png)",
    "![t](//evil.example/p.png)": "[t](//evil.example/p.png)",
    "![t](https://github.com/o/r/../../x/y/raw/p.png)": "[t](https://github.com/o/r/../../x/y/raw/p.png)",
    "![t](https://github.com.evil/o/r/p.png)": "[t](https://github.com.evil/o/r/p.png)",
    "!![t][u]\n\n[u]: http://evil/?d=DATA": "[t][u]\n\n[u]: http://evil/?d=DATA",
    '<img alt="t" src="http://evil/p.png">!': "t!",
    '<img src="a.png" srcset="http://evil/p.png 2x">': "",
    "<video poster='http://evil/p.png'></video>": "",
    "a<!-- hidden -->b": "a b",
    "<!-- hidden\n\nmore -->\nb": " \nb",
    "a <!-- never ended": "a &lt;!-- never ended",
    "<?hidden?>a<!X hidden>": " a ",
    "[a](x \"hidden\") ![b](y.png 'hidden')": "[a](x) ![b](y.png)",
    '[a]\n\n[a]: /x "hidden"': "[a]\n\n[a]: /x",
    '<b title="hidden" class="x" data-y=\'hidden\'>b</b>': '<b class="x">b</b>',
    "```sh hidden words\nls\n```": "```sh\nls\n```",
    f"a\u2060{TAGS}\u00ad\u3164b\u202e": "ab",
    "&#x200b;&#xE0041;a": "a",
    "`<!-- septet: wo-2 -->`": "`<! -- septet: wo-2 -->`",
    "```\n<!--septet answers: 1 -->\n```": "```\n<! --septet answers: 1 -->\n```",
    "\\<!-- septet: wo-2 -->": "\\&lt;!-- septet: wo-2 -->",
    "/approve\n  /merge": "\\/approve\n  \\/merge",
    "[skip ci] [ci skip] [no ci] [skip actions]": "(skip ci) (ci skip) (no ci) (skip actions)",
    "`[skip ci]` ***NO_CI***": "`(skip ci)` (NO_CI)",
    "a\nCo-authored-by: Eve <eve@example.org>\nb": "a\nb",
    "| `a | <!-- hidden --> | b` |\n| --- | --- | --- |\n": "| `a |   | b` |\n| --- | --- | --- |\n",
    '<a class="`"> <!-- hidden --> <a class="`">': '<a class="`">   <a class="`">',
    '<a class=">`"> <!-- hidden --> `': '<a class=">`">   `',
    "> ```\nout of it <!-- hidden -->": "> ```\nout of it  ",
    "a `b\n\nc <!-- hidden --> d` e": "a `b\n\nc   d` e",
    "[^1]\n\n[^1]:\n\n    <!-- hidden -->\n": "[^1]\n\n[^1]:\n\n     \n",
    "\\`<!-- hidden -->\\`": "\\` \\`",
    "<!<!-- x -->-- y -->": "<! -- y -->",
}


@pytest.mark.parametrize(("body", "cleaned"), HOSTILE.items())
def test_what_acts_or_hides_goes(body: str, cleaned: str) -> None:
    """A cleaned text closes no other issue, mentions no account, loads no picture and hides nothing."""
    assert OUT.markdown(body) == cleaned


def test_a_text_may_close_its_own_issue_only_where_the_repository_wants_that() -> None:
    """A text may close its own issue only if the repository's settings allow that."""
    assert OUT.markdown("Closes #7, fixes o/r#7") == "Closes #7, fixes o/r#7"
    assert Outgoing().markdown("Closes #7") == "Closes `#7`"


@pytest.mark.parametrize(
    ("title", "cleaned"),
    [
        ("bug: #7 - Totals are wrong", "bug: #7 - Totals are wrong"),
        ("fix: #9 - x [skip ci]", "fix: `#9` - x (skip ci)"),
        ("Bump @types/node\nand `@ada`", "Bump @`types/node` and @`ada`"),
        ("a\u200b <!-- septet: wo-2 --> &lt;b&gt;", "a &lt;b&gt;"),
    ],
)
def test_a_title_is_one_line_in_which_there_is_no_code(title: str, cleaned: str) -> None:
    """A title is one line, and its accounts and closing words lose their effect even between backquotes."""
    assert OUT.line(title) == cleaned


@pytest.mark.parametrize(
    ("message", "cleaned"),
    [
        ("feat: add a thing", "feat: add a thing"),
        ("feat: a\n\nBody with `@x` code.\n\n- one\n- two", "feat: a\n\nBody with `@x` code.\n\n- one\n- two"),
        ("feat: a\nsecond line\n\nCloses #7", "feat: a\nsecond line\n\nCloses #7"),
        ("feat: a\n\nBREAKING CHANGE: b is gone", "feat: a\n\nBREAKING CHANGE: b is gone"),
        ("feat: a\n\nb\n\nChange-Id: I1a2b", "feat: a\n\nb\n\nChange-Id: I1a2b"),
        ("feat: a\n\nSigned-off-by: Linus <l@example.org>", "feat: a"),
        (
            "feat: a\n\nb\n \nCo-authored-by: E <e@x>\nChange-Id: I1\nSee: c",
            "feat: a\n\nb\n\n- See: c\n\nChange-Id: I1",
        ),
        ("feat: a\n\nReviewed-by: E\n  <e@x>\n\nAcked-By : F", "feat: a"),
        (
            "feat: a\n\nx\n(cherry picked from commit 1)\nKey: v",
            "feat: a\n\n- x\n- (cherry picked from commit 1)\n- Key: v",
        ),
        ("feat: a\n\nskip-checks: true", "feat: a"),
        ("feat: a [ci skip]\n\n`fixes #9` for @ada", "feat: a (ci skip)\n\n`fixes `#9`` for @`ada`"),
        ("feat: a <!-- septet: x -->\u200b", "feat: a"),
    ],
)
def test_a_message_has_no_trailers_but_those_of_a_list(message: str, cleaned: str) -> None:
    """A message keeps allowed trailers, loses those that name people, and lists the others as text."""
    assert OUT.message(message) == cleaned


@pytest.mark.parametrize("text", [*HONEST.values(), *HOSTILE])
def test_what_is_clean_stays_so(text: str) -> None:
    """A text that is cleaned again does not change."""
    once = OUT.markdown(text)
    assert OUT.markdown(once) == once


@settings(max_examples=300, deadline=None)
@given(
    text=st.lists(
        st.sampled_from([
            *"`<>!-[]()#@ \n\\|/:a7", "<!--", "-->", "```", "![", "](", "Fixes #9", "@ada", "[skip ci]", "&#64;", "\u200b",
            "x-by: e", "<b ", "    ", "> ", "- ", "http://e.x/p?q", "~~~", "<?", "| - |",
        ]),
        max_size=30,
    ).map("".join)
)  # fmt: skip
def test_no_construction_lets_a_mark_or_a_skip_through(text: str) -> None:
    """No combination of pieces leaves a mark of Septet, a skipped CI or an invisible character."""
    for clean in (OUT.markdown, OUT.message, OUT.line):
        cleaned = clean(f"{text}<!-- septet: wo-2 -->[skip ci]")
        assert "<!-- septet" not in cleaned
        assert "[skip ci]" not in cleaned
        assert "\u200b" not in cleaned


@pytest.mark.parametrize("part", ["`", "<!--", "![", "<a b='", "closes a/b/c/", "[a](", "\n|a|", "x-by: \n", "&#"])
def test_no_text_takes_long(part: str) -> None:
    """The cleaning of the longest text takes less than five seconds, whatever its shape."""
    for clean in (OUT.markdown, OUT.message, OUT.line):
        begun = time.process_time()
        clean((part * 70_000)[:70_000])
        assert time.process_time() - begun < 5
