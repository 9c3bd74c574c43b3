import json
from typing import Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from septet.contracts.answers import (
    ClassifyIssueAnswer,
    CreateCommitAnswer,
    CreatePullRequestAnswer,
    GenerateBranchAnswer,
    ImplementPlanAnswer,
    PullRequestUrl,
)
from septet.contracts.facts import Usage
from septet.contracts.intake import IntakeInput
from septet.contracts.order import TEXT_LIMIT_BYTES, WorkOrderInput
from septet.contracts.wire import Wire
from septet.pipelines.inputs import PipelineInput


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"repository": ""}, "repository"),
        ({"repository": "/r", "title": "  "}, "issue or title is missing"),
        ({"repository": "/r", "issue": 1, "title": "t"}, "both given"),
        ({"repository": "/r", "issue": 0}, "issue"),
        ({"repository": "/r", "issue": 1, "agent": "--help"}, "agent"),
        ({"repository": "/r", "issue": 1, "base": "a\nb"}, "base"),
        ({"repository": "/r", "issue": 1, "after": ["no id!"]}, "after"),
        ({"repository": "/r", "issue": 1, "timeouts": {"wall_seconds": 0}}, "wall_seconds"),
        ({"repository": "/r", "title": "t", "description": "x" * TEXT_LIMIT_BYTES}, "65537 bytes"),
    ],
)
def test_input_that_is_wrong_names_its_field(given: dict[str, Any], named: str) -> None:
    """The error for a missing, wrong, unknown or too long field names the field."""
    with pytest.raises(ValidationError) as refused:
        WorkOrderInput.model_validate_json(json.dumps(given))
    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("contract", "answer"),
    [
        (ImplementPlanAnswer, {"success": "false", "summary": "x", "key_changes_made": [], "key_learnings": []}),
        (ClassifyIssueAnswer, {"issue_class": "/epic"}),
        (GenerateBranchAnswer, {"branch_name": "two\nlines"}),
        (CreateCommitAnswer, {"commit_message": " \n "}),
        (PullRequestUrl, {"url": "javascript:alert(1)"}),
        (CreatePullRequestAnswer, {"title": "A title", "body": "", "url": "https://x.example/pull/1"}),
    ],
)
def test_an_answer_of_another_type_or_meaning_is_refused(contract: Any, answer: dict[str, Any]) -> None:
    """A text as a boolean, a blank message and two kinds of answer in one are refused."""
    with pytest.raises(ValidationError):
        TypeAdapter(contract).validate_json(json.dumps(answer))


def test_usage_adds_up() -> None:
    """Usage adds field by field; an unknown cost stays unknown, and an estimate makes the sum an estimate."""
    one = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4, reasoning_tokens=5)
    priced = one.model_copy(update={"cost_usd": 0.5, "estimated": True})
    assert one.plus(one) == Usage(
        input_tokens=2, output_tokens=4, cache_read_tokens=6, cache_write_tokens=8, reasoning_tokens=10
    )
    assert one.plus(priced).cost_usd == priced.plus(one).cost_usd == 0.5
    assert priced.plus(priced).cost_usd == 1.0
    assert one.plus(priced).estimated


class _Part(Wire):
    name: str = ""
    """What it is called."""
    size: int = 0
    """How large it is,
    in bytes."""


class _Whole(_Part):
    parts: tuple[_Part, ...] = ()
    """What it is made of."""
    size: int = 0
    note: str = Field(default="", description="Said otherwise.")
    """Said here."""


def test_a_schema_says_what_the_docstrings_of_fields_say() -> None:
    """A field's own or inherited docstring is its description; a field that is declared again has its own only."""
    schema = _Whole.model_json_schema()
    told = {name: each.get("description") for name, each in schema["properties"].items()}
    assert told == {
        "name": "What it is called.", "size": None, "parts": "What it is made of.", "note": "Said otherwise.",
    }  # fmt: skip
    assert schema["$defs"]["_Part"]["properties"]["size"]["description"] == "How large it is,\nin bytes."


@pytest.mark.parametrize(
    ("kind", "rest"),
    [(WorkOrderInput, {"issue": 1}), (PipelineInput, {"issues": [1]}), (IntakeInput, {})],
    ids=["work order", "pipeline", "intake"],
)
def test_an_address_is_read_without_its_credentials(kind: type[BaseModel], rest: dict[str, Any]) -> None:
    """A repository's address loses its password on the way into each input, so that Temporal never stores it."""
    text = json.dumps({"repository": "https://ann:a-password@git.example/o/r", **rest})
    assert json.loads(kind.model_validate_json(text).model_dump_json())["repository"] == "https://git.example/o/r"
