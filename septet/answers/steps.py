"""What each step's answer must be, and how it may be given: contract, plain form, JSON Schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pydantic import JsonValue, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from septet.answers.ladder import Answer, read_answer
from septet.answers.plain import (
    PlainReader,
    read_branch,
    read_class,
    read_commit_message,
    read_plan,
    read_plan_path,
    read_pull_request,
)
from septet.contracts.answers import (
    BuildPlanAnswer,
    ClassifyIssueAnswer,
    CreateCommitAnswer,
    CreatePullRequestAnswer,
    FindPlanFileAnswer,
    GenerateBranchAnswer,
    ImplementPlanAnswer,
    StepAnswer,
)
from septet.contracts.names import Step

JsonSchema = dict[str, Any]

_CHECKED_AFTERWARDS: Final = frozenset({"minLength", "maxLength", "pattern"})


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The forms of one step's answer."""

    contract: TypeAdapter[Any]
    plain: PlainReader | None = None
    """The reader of its plain form; `None` where only JSON will do."""


ANSWER_FORMS: Final[Mapping[Step, AnswerForm]] = MappingProxyType(
    {
        Step.CLASSIFY_ISSUE: AnswerForm(TypeAdapter(ClassifyIssueAnswer), read_class),
        Step.BUILD_PLAN: AnswerForm(TypeAdapter(BuildPlanAnswer), read_plan),
        Step.FIND_PLAN_FILE: AnswerForm(TypeAdapter(FindPlanFileAnswer), read_plan_path),
        Step.GENERATE_BRANCH: AnswerForm(TypeAdapter(GenerateBranchAnswer), read_branch),
        Step.IMPLEMENT_PLAN: AnswerForm(TypeAdapter(ImplementPlanAnswer)),
        Step.CREATE_COMMIT: AnswerForm(TypeAdapter(CreateCommitAnswer), read_commit_message),
        Step.CREATE_PULL_REQUEST: AnswerForm(TypeAdapter(CreatePullRequestAnswer), read_pull_request),
    }
)


def contract_of(step: Step) -> TypeAdapter[Any]:
    """Return the contract of a step's answer."""
    return ANSWER_FORMS[step].contract


def read_step_answer(step: Step, text: str | None, structured: JsonValue = None) -> Answer[StepAnswer]:
    """Read a step's answer from what its agent said last; raises `AnswerError`."""
    form = ANSWER_FORMS[step]
    return read_answer(form.contract, text, structured=structured, plain=form.plain)


def schema_of(step: Step) -> JsonSchema:
    """Return the JSON Schema of a step's answer, self-contained, with the fields' descriptions."""
    forms = forms_of(step)
    return forms[0] if len(forms) == 1 else {"anyOf": list(forms)}


def request_schema_of(step: Step) -> JsonSchema:
    """Return the schema to give to a CLI that asks its model for structured output.

    Model APIs want one object at the root with all of its keys required, and know few constraints on strings: it
    is the first form of the answer, without them. What comes back is checked against the contract all the same.
    """
    form = forms_of(step)[0]
    members = {
        name: {word: value for word, value in member.items() if word not in _CHECKED_AFTERWARDS}
        for name, member in form["properties"].items()
    }
    return {**form, "properties": members}


def forms_of(step: Step) -> tuple[JsonSchema, ...]:
    """Return the JSON Schemas of the objects that answer a step: one, or one for each member of a union."""
    schema = contract_of(step).json_schema(schema_generator=_WithoutFieldTitles)
    definitions = schema.pop("$defs", {})
    return tuple(definitions[form["$ref"].rpartition("/")[2]] for form in schema.get("anyOf", ())) or (schema,)


class _WithoutFieldTitles(GenerateJsonSchema):
    """A title that repeats the field's name tells an agent nothing."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Answer no for each schema."""
        del schema
        return False
