"""The table of the steps' answers: contract, plain form and schemas."""

import json
from typing import Any

import pytest
from fakes.solutions import execution_answer, solution_answer

from septet.answers.ladder import AnswerError
from septet.answers.steps import (
    PIPELINE_FORMS,
    read_pieces,
    read_step_answer,
    request_schema_of,
    schema_of,
)
from septet.contracts.names import READ_OUTGOING, Step

PLAIN = [
    (Step.FIND_PLAN_FILE, "`specs/plan.md`", "specs/plan.md"),
    (Step.GENERATE_BRANCH, "feat-issue-7-wo-1-greet", "feat-issue-7-wo-1-greet"),
]


@pytest.mark.parametrize(("step", "text", "result_text"), PLAIN)
def test_a_plain_answer_is_read(step: Step, text: str, result_text: str) -> None:
    """The plain form of a path and of a branch gives its `result_text`."""
    answer = read_step_answer(step, text)
    assert (answer.value.result_text, answer.parsed_by) == (result_text, "plain")


@pytest.mark.parametrize(
    "text",
    [
        '{"findings": []}',
        ' ```json\n{"findings": []}\n```\n',
        "{'findings': [],}",
        '<think>It says {"findings": [1]}.</think>\n{"findings": []}',
    ],
    ids=["bare", "fence", "mended", "behind reasoning"],
)
def test_the_answer_of_a_reader_stands_alone(text: str) -> None:
    """The reader's answer is the whole text, also fenced, repaired or after reasoning."""
    assert read_step_answer(READ_OUTGOING, text).value.result_text == "findings: 0"
    assert read_pieces(READ_OUTGOING, [text[:9], text[9:]]) is not None
    assert read_pieces(READ_OUTGOING, ["It says:\n", '{"findings": []}']) is None


@pytest.mark.parametrize(
    ("step", "answer"), [(Step.BUILD_PLAN, solution_answer()), (Step.IMPLEMENT_PLAN, execution_answer())]
)
def test_solutions_and_executions_are_read(step: Step, answer: dict[str, Any]) -> None:
    """The answer is read from prose, a fence or structured output, and refused with an unknown key."""
    text = f"Here it is:\n\n```json\n{json.dumps(answer, indent=2)}\n```\n"
    read = read_step_answer(step, text, in_pipeline=True)
    assert read.value.model_dump(mode="json") == answer
    assert read_step_answer(step, None, structured=answer, in_pipeline=True).value == read.value
    for refused in (json.dumps({**answer, "confidence": 1}), "specs/plan.md"):
        with pytest.raises(AnswerError):
            read_step_answer(step, refused, in_pipeline=True)


ASKED = [*((step, False) for step in Step), *((step, True) for step in PIPELINE_FORMS)]


@pytest.mark.parametrize(("step", "in_pipeline"), ASKED)
def test_schemas_are_self_contained_and_described(step: Step, *, in_pipeline: bool) -> None:
    """Objects are closed and described without references; a CLI's schema is one object without constraints."""
    whole, asked = (each(step, in_pipeline=in_pipeline) for each in (schema_of, request_schema_of))
    assert "$ref" not in json.dumps([whole, asked])
    for schema in _objects(whole):
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        assert all(member["description"] for member in schema["properties"].values())
    assert (asked["type"], asked["required"]) == ("object", list(asked["properties"]))
    words = {word for schema in _objects(asked) for member in schema["properties"].values() for word in member}
    assert not {"minLength", "maxLength", "pattern", "minItems", "maxItems", "minimum", "maximum"} & words


def _objects(schema: dict[str, Any]) -> list[dict[str, Any]]:
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    inner += [schema["items"]] if "items" in schema else []
    own = [schema] if "properties" in schema else []
    return own + [found for one in inner for found in _objects(one)]
