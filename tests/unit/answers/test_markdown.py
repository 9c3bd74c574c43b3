"""Code blocks and sections of Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.answers.markdown import CodeBlock, code_blocks, section

LINES = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"], exclude_characters="`~"), max_size=20)
CODE = st.lists(LINES, max_size=5).map("\n".join)
DOCUMENT = """\
Intro.

# Spec

About.

## Test *Plan*

Run `make test`.

```markdown
## Test Plan
# Not a heading
```

### Unit

One.

## Rollout ##

Two.

Risks
=====

Three.
"""


def test_fenced_blocks_are_found_with_their_language() -> None:
    """Blocks come in their order, with their language and their unchanged content."""
    go, tildes, nested = (
        "```go title=x\nfunc f() {\n\n\treturn\n}\n```",
        "~~~\n```\nx\n```\n~~~",
        "````md\n```js\n1\n```\n````",
    )
    text = f"a\n{go}\nb\n{tildes}\n\n{nested}\n"
    assert code_blocks(text) == (
        CodeBlock("go", "func f() {\n\n\treturn\n}"),
        CodeBlock("", "```\nx\n```"),
        CodeBlock("md", "```js\n1\n```"),
    )


def test_blocks_in_lists_and_quotations_are_dedented() -> None:
    """A block in a list or quotation is found, without the indentation around it."""
    text = "- item\n\n  ```py\n  if x:\n      y\n  ```\n\n> ```sh\n> ls\n> ```\n"
    assert code_blocks(text) == (CodeBlock("py", "if x:\n    y"), CodeBlock("sh", "ls"))


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("", ()),
        ("`inline` and ``` not ``` a block", ()),
        ("    indented\n", ()),
        ("```\n```", (CodeBlock("", ""),)),
        ("```json\n{\n", (CodeBlock("json", "{"),)),
        ("```json\r\n{}\r\n```\r\n", (CodeBlock("json", "{}"),)),
        ("```\nx\n\n```", (CodeBlock("", "x\n"),)),
    ],
)
def test_edges_of_blocks(text: str, blocks: tuple[CodeBlock, ...]) -> None:
    """Inline code and indented text are no blocks, and an open block ends with the text."""
    assert code_blocks(text) == blocks


@given(CODE, st.sampled_from(["", "python", "c++"]), st.sampled_from(["```", "~~~~"]))
def test_content_is_kept_as_it_was(content: str, language: str, fence: str) -> None:
    """The content of a fenced block comes out unchanged."""
    assert code_blocks(f"Before.\n\n{fence}{language}\n{content}\n{fence}\nAfter.\n") == (
        CodeBlock(language, content),
    )


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Rollout", "Two."),
        ("  Rollout ", "Two."),
        ("Unit", "One."),
        ("Risks", "Three."),
        ("Test Plan", "Run `make test`.\n\n```markdown\n## Test Plan\n# Not a heading\n```\n\n### Unit\n\nOne."),
        ("Not a heading", None),
        ("Test", None),
        ("Intro.", None),
        ("", None),
    ],
)
def test_a_section_ends_at_the_next_heading_of_its_level(heading: str, expected: str | None) -> None:
    """A section holds its deeper headings and ends at a heading of its own or a higher level outside fences."""
    assert section(DOCUMENT, heading) == expected


def test_a_section_of_the_highest_level_holds_all_below() -> None:
    """A first-level section ends at the next first-level heading, also an underlined one."""
    whole = section(DOCUMENT, "Spec")
    assert whole is not None
    assert whole.startswith("About.")
    assert whole.endswith("Two.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n# B\nb", ""),
        ("# A", ""),
        ("# A\n\nfirst\n\n# A\n\nsecond", "first"),
        ("### A\nx\n## B\ny", "x"),
        ("# `A`\r\n\r\nx\r\ny\r\n", "x\ny"),
        ("# [A](http://x)\n\n    code\n", "    code"),
        ("# \\A\nx", None),
        ("# &#65;\nx", "x"),
        ("> # A\n> x", None),
        ("- # A\n  x\n\n# B", None),
        ("#A\nx", None),
        ("<!--\n# A\n-->\nx", None),
        ("# A\nx\n\n> # B\n> y\n", "x\n\n> # B\n> y"),
    ],
)
def test_edges_of_sections(text: str, expected: str | None) -> None:
    """A heading is found by its plain text in the document itself; the first of several headings counts."""
    assert section(text, "A") == expected


def test_a_heading_over_two_lines_is_one_heading() -> None:
    """An underlined heading may have more than one line."""
    assert section("Test\nPlan\n---\nx", "Test Plan") == "x"


@given(
    st.lists(st.sampled_from(["# A", "## A", "# B", "## B", "text", "```", "> # A", ""]), max_size=12).map(
        "\n".join
    )
)
def test_a_section_is_a_part_of_the_text(text: str) -> None:
    """A section is an unchanged part of the text."""
    found = section(text, "A")
    assert found is None or found in text
