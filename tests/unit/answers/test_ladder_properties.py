"""The ladder over generated answers: found in any prose, refused after any change, read in linear time."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel

from septet.answers.ladder import AnswerError
from septet.answers.steps import contract_of, read_step_answer
from septet.contracts.names import Step

WORDS = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=30)
LINES = WORDS.map(lambda text: f"x{text}")
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60).map(
    lambda text: f"x{text}"
)
ANSWERS: Mapping[Step, st.SearchStrategy[dict[str, Any]]] = {
    Step.CLASSIFY_ISSUE: st.fixed_dictionaries({"issue_class": st.sampled_from(["/bug", "/feature", "/chore"])}),
    Step.BUILD_PLAN: st.fixed_dictionaries({"plan_path": LINES, "summary": TEXTS}),
    Step.FIND_PLAN_FILE: st.fixed_dictionaries({"plan_path": LINES | st.just("0")}),
    Step.GENERATE_BRANCH: st.fixed_dictionaries({"branch_name": LINES}),
    Step.IMPLEMENT_PLAN: st.fixed_dictionaries(
        {
            "success": st.booleans(),
            "summary": TEXTS,
            "key_changes_made": st.lists(TEXTS, max_size=3),
            "key_learnings": st.lists(TEXTS, max_size=3),
        }
    ),
    Step.CREATE_COMMIT: st.fixed_dictionaries({"commit_message": TEXTS}),
    Step.CREATE_PULL_REQUEST: st.fixed_dictionaries({"title": LINES, "body": TEXTS})
    | st.fixed_dictionaries({"url": st.integers(1, 999).map("https://example.org/o/r/pull/{}".format)}),
}
STEPS_WITH_ANSWERS = st.sampled_from(list(Step)).flatmap(lambda step: st.tuples(st.just(step), ANSWERS[step]))

# fmt: off
NOISE = (
    "Done.", "It's finished", 'the "main" change', "{ { {", "} }", "- [x] open", "`{`", "f(a[0], {})", "[1]",
    "[[", "]]", "() => { return 1; }", '"""', "'", '"', "~~", "``", "`", "// note", "/* note", "*/",
    "${HOME}", "{{name}}", "<b>", "\\", "a: b", '{"', '{"key', '[ "a"', "{a: b}", '{"a": x}',
    '{"passed": 12}', "```python\nprint({})\n```", "\ufeff", "\u2028", "\r\n", "\n\n", "{'a': 'b'}", "NaN",
    "[1, 2, 3]", "https://example.org/?a={b}",
)
# fmt: on
PROSE = st.lists(st.sampled_from(NOISE) | st.from_regex(r"[\w .,;!?()-]{0,40}", fullmatch=True), max_size=12).map(
    " ".join
)
FENCES = st.sampled_from(
    [("", ""), ("```json\n", "\n```"), ("```\n", "\n```"), ("~~~~\n", "\n~~~~"), ("<r>", "</r>")]
)
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)


@st.composite
def written(draw: st.DrawFn, answer: dict[str, Any]) -> str:
    keys = draw(st.permutations(list(answer)))
    return json.dumps(
        {key: answer[key] for key in keys},
        indent=draw(st.sampled_from([None, 0, 2, "\t"])),
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from([None, (",", ":"), (" , ", " : ")])),
    )


def as_json(value: BaseModel) -> object:
    return value.model_dump(mode="json")


def assert_refused(step: Step, text: str) -> None:
    with pytest.raises(AnswerError):
        read_step_answer(step, text)


@given(st.data(), STEPS_WITH_ANSWERS, PROSE, FENCES, PROSE)
def test_every_answer_is_found_in_prose_fences_and_noise(
    data: st.DataObject,
    step_and_answer: tuple[Step, dict[str, Any]],
    before: str,
    fence: tuple[str, str],
    after: str,
) -> None:
    """A valid answer is found in any prose, fence or noise that holds no other answer."""
    step, answer = step_and_answer
    text = f"{before} Answer\n{fence[0]}{data.draw(written(answer))}{fence[1]}\n{after}"
    assert as_json(read_step_answer(step, text).value) == answer


@given(st.data(), STEPS_WITH_ANSWERS)
def test_every_answer_alone_is_read_as_json(
    data: st.DataObject, step_and_answer: tuple[Step, dict[str, Any]]
) -> None:
    """A bare object, an array of one and a twice encoded object are read on the rung `json`."""
    step, answer = step_and_answer
    text = data.draw(written(answer))
    for spelling in (text, f"\ufeff {text}\n", f"[{text}]", json.dumps(text)):
        read = read_step_answer(step, spelling)
        assert (as_json(read.value), read.parsed_by, read.warnings) == (answer, "json", ())


@given(st.data(), STEPS_WITH_ANSWERS)
def test_an_answer_cut_off_anywhere_is_refused(
    data: st.DataObject, step_and_answer: tuple[Step, dict[str, Any]]
) -> None:
    """An answer that was cut off, at its end or its beginning, is refused, bare, fenced or after prose."""
    step, answer = step_and_answer
    text = data.draw(written(answer))
    part = text[: data.draw(st.integers(0, len(text) - 1))]
    rest = json.dumps(answer)[data.draw(st.integers(1, len(json.dumps(answer)) - 1)) :]
    for cut in (part, f"```json\n{part}\n```", f"The answer is {part}", f"[{text}", json.dumps(part), rest):
        assert_refused(step, cut)


@given(st.data(), STEPS_WITH_ANSWERS, VALUES)
def test_an_answer_with_a_value_of_another_type_is_refused(
    data: st.DataObject, step_and_answer: tuple[Step, dict[str, Any]], value: object
) -> None:
    """An answer with a value of another type is refused."""
    step, answer = step_and_answer
    key = data.draw(st.sampled_from(list(answer)))
    assume(type(value) is not type(answer[key]) or type(value) is list)
    assume(not (isinstance(value, list) and isinstance(answer[key], list) and not value))
    assert_refused(step, data.draw(written(answer | {key: value})))


@given(st.data(), STEPS_WITH_ANSWERS, st.text(max_size=8), VALUES)
def test_an_answer_with_other_keys_is_refused(
    data: st.DataObject, step_and_answer: tuple[Step, dict[str, Any]], key: str, value: object
) -> None:
    """A missing, additional or repeated key and an object around the answer are refused."""
    step, answer = step_and_answer
    text = data.draw(written(answer))
    dropped = data.draw(st.sampled_from(list(answer)))
    assert_refused(step, json.dumps({name: answer[name] for name in answer if name != dropped}))
    assert_refused(step, text.replace("{", f"{{{json.dumps(dropped)}: {json.dumps(answer[dropped])},", 1))
    assert_refused(step, json.dumps({key: answer}))
    assert_refused(step, f"The result is {{{json.dumps(key)}: {text}}}")
    assume(key not in answer)
    assert_refused(step, json.dumps(answer | {key: value}))


@given(st.data(), st.sampled_from(list(Step)))
def test_different_answers_are_a_conflict_and_equal_ones_are_not(data: st.DataObject, step: Step) -> None:
    """Two equal answers are read as one, and two different answers are refused."""
    one, other = data.draw(ANSWERS[step]), data.draw(ANSWERS[step])
    text = f"{data.draw(written(one))}\nor\n{data.draw(written(other))}"
    if one == other:
        assert as_json(read_step_answer(step, text).value) == one
    else:
        assert_refused(step, text)


@given(st.sampled_from(list(Step)), st.text(st.sampled_from("{}[]\"':,\\/*`~ \n01aeNt")))
def test_what_is_read_is_valid(step: Step, text: str) -> None:
    """A text of punctuation gives a valid answer or an `AnswerError`."""
    try:
        answer = read_step_answer(step, text)
    except AnswerError:
        return
    assert contract_of(step).validate_python(answer.value) == answer.value
