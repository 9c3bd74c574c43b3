"""Typed answers for callers with contracts of their own: the review of ADR-009, arrays, YAML."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from yaml import YAMLError, safe_dump

from septet.answers.json_values import Rung
from septet.answers.ladder import Answer, AnswerError
from septet.answers.own_contract import read_typed_answer
from septet.answers.yaml_values import MAX_MARKDOWN_CHARACTERS, MAX_YAML_CHARACTERS, read_yaml


class Finding(BaseModel):
    model_config = ConfigDict(frozen=True)
    path: str = Field(alias="file")
    line: int
    severity: str
    message: str


class ReviewResult(BaseModel):
    model_config = ConfigDict(frozen=True)
    approved: bool
    findings: tuple[Finding, ...]


FINDING = {"file": "greet.py", "line": 3, "severity": "high", "message": 'It says "hello": always.'}
REVIEW = {"approved": False, "findings": [FINDING]}
REVIEWED = ReviewResult(
    approved=False,
    findings=(Finding(file="greet.py", line=3, severity="high", message='It says "hello": always.'),),
)
YAML_REVIEW = """\
approved: false
findings:
  - file: greet.py
    line: 3
    severity: high
    message: 'It says "hello": always.'
"""
NAMES = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"], exclude_characters="`~"), max_size=20)


def fenced(source: str, language: str = "yaml") -> str:
    """Put a source in a fence, after prose."""
    return f"My review:\n\n```{language}\n{source}\n```\n"


@pytest.mark.parametrize(
    ("text", "rung"),
    [
        (json.dumps(REVIEW), "json"),
        (f"I reviewed {{all}} of it. {json.dumps(REVIEW)}", "embedded"),
        (fenced(json.dumps(REVIEW, indent=2), "json"), "fence"),
        (fenced(repr(REVIEW), "python"), "mended"),
        (fenced(YAML_REVIEW), "fence"),
        (fenced(YAML_REVIEW, "yml"), "fence"),
        (fenced(YAML_REVIEW, "YAML title=x"), "fence"),
        (fenced(json.dumps(REVIEW)), "fence"),
        (f"- review:\n\n  ~~~yaml\n  {YAML_REVIEW.replace(chr(10), chr(10) + '  ')}\n  ~~~\n", "fence"),
        (f"{fenced(YAML_REVIEW)}\n{json.dumps(REVIEW)}", "fence"),
    ],
)
def test_a_review_is_read(text: str, rung: Rung) -> None:
    """The review with its findings is read from JSON anywhere and from a YAML fence, by its aliases."""
    assert read_typed_answer(ReviewResult, text) == Answer(
        REVIEWED, rung, read_typed_answer(ReviewResult, text).warnings
    )
    assert read_typed_answer(ReviewResult, text).parsed_by == rung


def test_an_array_is_read_as_one() -> None:
    """A contract for an array takes an array, in JSON as in YAML, whichever bracket comes first in the text."""
    findings = list[Finding]
    for text in (
        f"See {{this}}: {json.dumps([FINDING])}",
        fenced(safe_dump([FINDING])),
        f"[{json.dumps(FINDING)}]",
    ):
        assert read_typed_answer(findings, text).value == [REVIEWED.findings[0]]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(REVIEW | {"approved": "false"}),
        json.dumps(REVIEW | {"score": 1}),
        json.dumps({"approved": False, "findings": [FINDING | {"extra": 1}]}),
        json.dumps({"approved": False, "findings": [FINDING | {"line": "3"}]}),
        json.dumps({"approved": False, "findings": [FINDING | {"line": 3.5}]}),
        json.dumps({"review": REVIEW}),
        json.dumps(REVIEW)[:-1],
        json.dumps(FINDING),
        YAML_REVIEW,
        fenced(YAML_REVIEW, "text"),
        fenced(YAML_REVIEW, ""),
        f"{fenced(YAML_REVIEW)}\n{json.dumps(REVIEW | {'approved': True})}",
        f"{fenced(YAML_REVIEW)}\n{fenced(YAML_REVIEW.replace('line: 3', 'line: 4'))}",
        fenced(YAML_REVIEW.replace("false", "no")),
        fenced(YAML_REVIEW.replace("false", '"false"')),
        fenced(YAML_REVIEW.replace("false", "FALSE")),
        fenced(YAML_REVIEW.replace("line: 3", "line: '3'")),
        fenced(YAML_REVIEW.replace("line: 3", "line: 3.0")),
        fenced(YAML_REVIEW.replace("line: 3", "line: 03")),
        fenced(YAML_REVIEW.replace("line: 3", "line: 0x3")),
        fenced(YAML_REVIEW.replace("line: 3", "line: 1:30")),
        fenced(YAML_REVIEW.replace("line: 3", "line: .nan")),
        fenced(YAML_REVIEW.replace("line: 3", "line:")),
        fenced(YAML_REVIEW.replace("severity: high", "severity: 1")),
        fenced(YAML_REVIEW.replace("severity: high", "severity: null")),
        fenced(YAML_REVIEW.replace("severity: high", "severity: !!str high")),
        fenced(f"approved: true\n{YAML_REVIEW}"),
        fenced(f"review:\n  approved: true\n{YAML_REVIEW}"),
        fenced(f"{YAML_REVIEW}---\n{YAML_REVIEW}"),
        fenced(f"{YAML_REVIEW}more: true\n"),
        fenced("approved: false\nfindings: *all\n"),
        fenced("approved: false\nfindings: [\n"),
        fenced("approved: !!python/object/apply:os.getcwd []\nfindings: []\n"),
        fenced(""),
    ],
)
def test_strictness_holds_for_callers_contracts(text: str) -> None:
    """Other types, other keys, wrappers, what is cut off or given twice is refused, in JSON as in YAML."""
    with pytest.raises(AnswerError):
        read_typed_answer(ReviewResult, text)


def test_dates_and_spellings_of_no_stay_text() -> None:
    """YAML's own ideas of dates, booleans and numbers do not change a text."""
    source = "a: 2026-01-01\nb: no\nc: 12:30\nd: 010\ne: 1_000\nf: .inf\ng: +1\nh: '1'\ni: =\nj: <<\nk: 1e3\nl: Infinity\n"
    values = ["2026-01-01", "no", "12:30", "010", "1_000", ".inf", "+1", "1", "=", "<<", "1e3", "Infinity"]
    assert read_typed_answer(dict[str, str], fenced(source)).value == dict(
        zip("abcdefghijkl", values, strict=True)
    )


def test_yaml_has_the_values_of_json() -> None:
    """Plain scalars that JSON knows have JSON's values, and so have YAML's spellings of null and the booleans."""
    numbers = "[1, -2, 2.5, 1.0e+3]"
    words = "[true, True, false, False, null, Null, ~]"
    texts = "['x', \"\\n\", y, 'true', '1', 'null']"
    assert read_yaml(numbers) == [1, -2, 2.5, 1000.0]
    assert read_yaml(words) == [True, True, False, False, None, None, None]
    assert read_yaml(texts) == ["x", "\n", "y", "true", "1", "null"]
    assert read_yaml("a:\nb: ''") == {"a": None, "b": ""}


@pytest.mark.parametrize(
    "source",
    [
        "a: &x [1]\nb: *x",
        "{[1]: 2}",
        "{1: 2}",
        "a: 1\na: 1",
        "'a': 1\na: 1",
        "!tag {a: 1}",
        "- !!set {x}",
        "[" * 10_000,
        "{a: " * 10_000,
        "- " * 100 + "a",
        "a: b: c",
        "\x01",
        "a\n---\nb",
        "",
        "# nothing",
    ],
)
def test_what_json_has_not_is_refused(source: str) -> None:
    """Aliases, tags, keys that are no text or stand twice, several documents and great depth are no JSON."""
    with pytest.raises(YAMLError):
        read_yaml(source)


@pytest.mark.parametrize("source", ['"\\UFFFFFFFF"', f"%YAML {'1' * 5000}.1\n---\na"])
def test_absurd_yaml_is_an_answer_error(source: str) -> None:
    """What PyYAML itself stumbles over is a refusal like any other."""
    with pytest.raises(AnswerError, match="the YAML cannot be read"):
        read_typed_answer(str, fenced(source))


def test_the_amount_of_yaml_is_bounded() -> None:
    """More YAML than is read in good time is refused, and fences are looked for in the end of a text only."""
    with pytest.raises(AnswerError, match="more than 65536 characters of YAML"):
        read_typed_answer(ReviewResult, fenced(YAML_REVIEW) + fenced("x" * MAX_YAML_CHARACTERS))
    filler = "x" * MAX_MARKDOWN_CHARACTERS + "\n"
    assert read_typed_answer(ReviewResult, filler + fenced(YAML_REVIEW)).value == REVIEWED
    with pytest.raises(AnswerError):
        read_typed_answer(ReviewResult, fenced(YAML_REVIEW) + filler)


def test_a_text_without_a_yaml_fence_is_not_parsed_as_markdown() -> None:
    """Reasons for a text without YAML say nothing of it."""
    with pytest.raises(AnswerError) as refused:
        read_typed_answer(ReviewResult, "No review.")
    assert refused.value.reasons == ("The text holds no JSON object.",)


@given(st.booleans(), st.lists(st.tuples(NAMES, st.integers(), NAMES, NAMES), max_size=3), st.booleans())
def test_every_review_is_read_from_yaml(approved: bool, rows: list[tuple[Any, ...]], flow: bool) -> None:
    """What a YAML library writes is read back, whatever the texts in it look like."""
    review = {
        "approved": approved,
        "findings": [dict(zip(("file", "line", "severity", "message"), row, strict=True)) for row in rows],
    }
    source = safe_dump(review, default_flow_style=flow, allow_unicode=True, width=10_000)
    expected = TypeAdapter(ReviewResult).validate_python(review)
    assert read_typed_answer(ReviewResult, fenced(source)).value == expected
