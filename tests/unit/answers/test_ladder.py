"""The answer ladder beyond its corpus: the order of its rungs, contracts of any kind, and its bounds."""

import json
from typing import Any

import pytest
from pydantic import JsonValue, TypeAdapter

from septet.answers.ladder import MAX_TEXT_CHARACTERS, MAX_VALUES, Answer, AnswerError, read_answer
from septet.answers.plain import NotPlainError
from septet.contracts.answers import (
    ClassifyIssueAnswer,
)

BUG = ClassifyIssueAnswer(issue_class="/bug")
BUG_JSON = '{"issue_class": "/bug"}'
FEATURE_JSON = '{"issue_class": "/feature"}'


def read(text: str | None, structured: JsonValue = None) -> Answer[ClassifyIssueAnswer]:
    return read_answer(ClassifyIssueAnswer, text, structured=structured)


def reasons(contract: type[object] | TypeAdapter[Any], text: str | None) -> tuple[str, ...]:
    with pytest.raises(AnswerError) as refused:
        read_answer(contract, text)
    return refused.value.reasons


def bug_form(text: str) -> JsonValue:
    if "bug" not in text:
        raise NotPlainError("it names no bug")
    return {"issue_class": "/bug"}


@pytest.mark.parametrize("structured", [{"issue_class": "/bug"}, BUG_JSON, [{"issue_class": "/bug"}]])
def test_structured_output_comes_first(structured: JsonValue) -> None:
    """Structured output is the answer, whatever the text says."""
    assert read(FEATURE_JSON, structured) == Answer(BUG, "structured")


@pytest.mark.parametrize(
    "structured",
    ["/bug", {"issue_class": "bug"}, {"answer": {"issue_class": "/bug"}}, "{'issue_class': '/bug'}", float("nan")],
)
def test_structured_output_that_does_not_match_is_passed_over_with_a_warning(structured: JsonValue) -> None:
    """Structured output that breaks the contract gives a warning, and the text is read instead."""
    answer = read(BUG_JSON, structured)
    assert (answer.value, answer.parsed_by) == (BUG, "json")
    assert answer.warnings
    assert all(warning.startswith("The structured output cannot be used") for warning in answer.warnings)


def test_structured_output_of_any_depth_is_refused_and_not_followed() -> None:
    """A value nested 100,000 deep is refused without a crash, and the text is read instead."""
    deep: JsonValue = []
    for _ in range(100_000):
        deep = [deep]
    assert read(BUG_JSON, deep).parsed_by == "json"


def test_the_plain_form_is_checked_against_the_contract() -> None:
    """The result of a plain reader is validated like JSON."""
    assert read_answer(ClassifyIssueAnswer, "a bug", plain=bug_form) == Answer(BUG, "plain")
    with pytest.raises(AnswerError, match=r"issue_class: Field required"):
        read_answer(ClassifyIssueAnswer, "a bug", plain=lambda _: {"plan": "x"})


def test_a_text_with_json_in_it_has_no_plain_form() -> None:
    """A text with broken JSON is not read as plain text."""
    for text in ('{"issue_class": "bug"}', '{"issue_class": "/bug', 'a bug {"issue_class": 1}'):
        with pytest.raises(AnswerError):
            read_answer(ClassifyIssueAnswer, text, plain=bug_form)


def test_reasons_name_the_field_and_never_the_value() -> None:
    """A reason names the wrong field and the rule, but not the agent's value."""
    (reason,) = reasons(ClassifyIssueAnswer, '{"issue_class": "/secret-value"}')
    assert reason == "The JSON cannot be used: issue_class: Input should be '/bug', '/feature' or '/chore'."


def test_reasons_are_bounded_and_printable() -> None:
    """A reason has at most 300 characters and no control character."""
    (reason,) = reasons(ClassifyIssueAnswer, json.dumps({"\x1b[31m" + "k" * 10_000: 0}))
    assert len(reason) == 300
    assert reason.isprintable()
    (reason,) = reasons(ClassifyIssueAnswer, '{"issue_class": nul}'.replace("nul", "\ud800"))
    assert reason.isprintable()
    (reason,) = reasons(ClassifyIssueAnswer, json.dumps({str(number): 0 for number in range(500)}))
    assert reason == "The JSON cannot be used: it breaks the schema in 501 places."


def test_of_a_long_text_the_end_is_read() -> None:
    """Only the end of a text over the limit is read, and a warning gives the length."""
    answer = read("x" * MAX_TEXT_CHARACTERS + BUG_JSON)
    assert (answer.value, answer.parsed_by) == (BUG, "embedded")
    assert answer.warnings == (
        f"Of {MAX_TEXT_CHARACTERS + len(BUG_JSON)} characters only the last {MAX_TEXT_CHARACTERS} were looked at.",
    )
    assert reasons(ClassifyIssueAnswer, BUG_JSON + "x" * MAX_TEXT_CHARACTERS)[0].endswith("no JSON object.")


def test_a_text_full_of_json_is_refused() -> None:
    """A text with more than 1,000 values is refused, even if one of them would match."""
    filler = "[1] " * (MAX_VALUES - 1)
    assert read(filler + BUG_JSON).parsed_by == "embedded"
    assert "more than 1000 JSON values" in reasons(ClassifyIssueAnswer, "[1] " + filler + BUG_JSON)[0]
