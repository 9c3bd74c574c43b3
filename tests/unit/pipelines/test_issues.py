"""The issues of a pipeline: from a file, from the bodies of issues, and in their order."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.errors import InvalidInputError
from septet.pipelines.inputs import PipelineIssue
from septet.pipelines.issues import depends_on_in, issues_in, order_issues, read_issue_file


def issue(issue_id: str, *depends_on: str) -> PipelineIssue:
    return PipelineIssue(id=issue_id, title="t", body="", depends_on=depends_on)


def order(*issues: PipelineIssue) -> str:
    return "".join(each.id for each in order_issues(issues))


def test_the_given_order_is_kept_where_nothing_speaks_against_it() -> None:
    """An issue moves back only behind its dependencies; otherwise the given order stays."""
    assert order(issue("c"), issue("a"), issue("b")) == "cab"
    assert order(issue("a", "d"), issue("b"), issue("c", "a"), issue("d")) == "bdac"


@given(st.lists(st.sets(st.integers(0, 30)), max_size=30))
def test_each_comes_after_what_it_depends_on(edges: list[set[int]]) -> None:
    """Each issue comes after its dependencies, for all dependencies without a circle."""
    issues = [
        issue(str(number), *(str(other) for other in others if other < number))
        for number, others in enumerate(edges)
    ]
    found = [each.id for each in order_issues(reversed(issues))]
    assert sorted(found) == sorted(each.id for each in issues)
    assert all(found.index(other) < found.index(each.id) for each in issues for other in each.depends_on)


@pytest.mark.parametrize(
    ("issues", "words"),
    [
        ((issue("a", "b"), issue("b", "c"), issue("c", "a")), "wait for each other: a → b → c → a."),
        ((issue("a", "a"),), "wait for each other: a → a."),
        ((issue("a", "x"),), "a depends on x, which is not an issue of this pipeline"),
        ((issue("a"), issue("b"), issue("a")), "these ids occur more than once: a."),
    ],
)
def test_what_has_no_order_is_refused(issues: tuple[PipelineIssue, ...], words: str) -> None:
    """The error names the circle, the unknown issue or the repeated id."""
    with pytest.raises(InvalidInputError) as refused:
        order_issues(issues)
    assert words in refused.value.message


def test_a_long_chain_is_no_problem() -> None:
    """A chain of a thousand issues is ordered, and a circle of a thousand issues is refused."""
    chain = [issue(str(number), str(number + 1)) for number in range(999)]
    assert [each.id for each in order_issues([*chain, issue("999")])] == [
        str(number) for number in range(999, -1, -1)
    ]
    with pytest.raises(InvalidInputError, match="wait for each other"):
        order_issues([*chain, issue("999", "0")])


def test_a_file_holds_texts_and_numbers(tmp_path: Path) -> None:
    """A number in a file stands for an issue of the forge, in `depends_on` too."""
    file = tmp_path / "issues.json"
    entries = [7, {"id": 8}, {"id": "A", "title": "Größe", "body": "…", "depends_on": [7, "8"]}]
    file.write_text(json.dumps(entries), encoding="utf-8")
    assert read_issue_file(file) == (
        PipelineIssue(id="7"),
        PipelineIssue(id="8"),
        PipelineIssue(id="A", title="Größe", body="…", depends_on=("7", "8")),
    )
    assert issues_in(b'[{"id": 1, "title": "Without a body"}]', "f")[0].number is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[", "f is not valid JSON"),
        ("[]", "f does not contain a list of issues"),
        ("[" * 100_000, "f is not valid JSON"),
        ('[1, "x"]', "f, entry 2: it is neither an object nor a number"),
        ('[{"title": "t"}]', "f, entry 1: id"),
        ('[{"id": "a b", "title": "t"}]', "f, entry 1 (a b): id"),
        ('[1, {"id": "B", "body": "x"}]', "f, entry 2 (B): title is missing"),
        (
            '[{"id": "A", "title": "t", "depend_on": []}]',
            "f, entry 1 (A): depend_on is not a known field (did you mean depends_on?).",
        ),
        (
            '[{"id": "A", "title": "t", "description": "d"}]',
            "description is not a known field (did you mean body?).",
        ),
        (json.dumps(list(range(1, 1002))), "f holds 1001 issues, 1000 are allowed"),
    ],
)
def test_an_entry_that_is_no_issue_is_named(content: str, words: str) -> None:
    """The error names the wrong entry and its mistake."""
    with pytest.raises(InvalidInputError) as refused:
        issues_in(content.encode(), "f")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Depends on #12, #13", ("12", "13")),
        ("Text.\n\n- **Blocked by:** #12 and #13.\n", ("12", "13")),
        ("> depends on: #12 & #12; #99", ("12",)),
        ("blocked by #12\r\nDepends on #13", ("12", "13")),
        ("It depends on #12 in a sentence.", ()),
        ("Depends on #1", ()),
        ("Depends on 12", ()),
        ("", ()),
    ],
)
def test_a_body_says_what_comes_before(body: str, expected: tuple[str, ...]) -> None:
    """Lines that name dependencies count for issues of the pipeline, and not for the issue itself."""
    assert depends_on_in(body, {"1", "12", "13"}, "1") == expected
