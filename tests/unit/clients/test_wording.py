import json

import pytest
from pydantic import BaseModel, ValidationError

from septet.contracts.decisions import PlanDecision, RetryCall
from septet.contracts.order import WorkOrderInput
from septet.contracts.wording import describe_mistakes

ORDER = {"repository": "/app", "issue": 1}


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        (PlanDecision, {}, "plan_sha256 is missing"),
        (PlanDecision, {"plan_sha256": "x"}, "plan_sha256 must be a SHA-256: 64 hexadecimal digits"),
        (PlanDecision, {"plan_sha256": "0" * 64, "sha": 1}, "sha is not a known field"),
        (RetryCall, {"who": "x" * 201}, "who must have at most 200 characters"),
        (WorkOrderInput, {**ORDER, "issue": "42"}, "issue must be a whole number"),
        (WorkOrderInput, {**ORDER, "priority": 6}, "priority must be at most 5"),
        (WorkOrderInput, {**ORDER, "draft": 1}, "draft must be true or false"),
        (WorkOrderInput, {**ORDER, "labels": "bug"}, "labels must be a list"),
        (WorkOrderInput, {**ORDER, "labels": [""]}, "labels.0 must not be empty"),
        (WorkOrderInput, {**ORDER, "agent": "a\nb"}, "agent must be one line, without control characters"),
        (WorkOrderInput, {**ORDER, "stage": "done"}, "stage must be one of 'collected', 'triaged'"),
    ],
)
def test_a_mistake_is_told_in_words_that_people_use(kind: type[BaseModel], fields: object, words: str) -> None:
    """The message names the field and the rule, without pydantic's words and without the value."""
    with pytest.raises(ValidationError) as caught:
        kind.model_validate_json(json.dumps(fields), extra="forbid")
    assert describe_mistakes(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("body", "description"),
        ("repository_url", "repository"),
        ("label", "labels"),
        ("isue", "issue"),
    ],
)
def test_a_name_of_another_face_is_understood(name: str, meant: str) -> None:
    """The message suggests the field for another client's name or for a typing mistake."""
    with pytest.raises(ValidationError) as caught:
        WorkOrderInput.model_validate({**ORDER, name: "x"}, extra="forbid")
    told = describe_mistakes(caught.value, WorkOrderInput.model_fields)
    assert told == f"{name} is not a known field (did you mean {meant}?)"


def test_a_sentence_of_ours_stays_whole() -> None:
    """The sentence of a model's own check has no field before it."""
    with pytest.raises(ValidationError) as caught:
        WorkOrderInput.model_validate({"repository": "/app"})
    assert describe_mistakes(caught.value).startswith("issue or title is missing: ")
