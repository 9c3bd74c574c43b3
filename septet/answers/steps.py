"""The forms of each step's answer: contract, text without JSON, JSON Schema; the finalizer's prompts."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import Any, Final

from pydantic import JsonValue, TypeAdapter

from septet.answers.json_values import is_alone
from septet.answers.ladder import Answer, AnswerError, read_answer
from septet.answers.plain import (
    PlainReader,
    read_branch,
    read_class,
    read_commit_message,
    read_plan,
    read_plan_path,
    read_pull_request,
)
from septet.answers.reasoning import answer_part, without_turn_end
from septet.contracts.answers import (
    BuildPlanAnswer,
    ClassifyIssueAnswer,
    CreateCommitAnswer,
    CreatePullRequestAnswer,
    FindPlanFileAnswer,
    GenerateBranchAnswer,
    ImplementPlanAnswer,
    ReadOutgoingAnswer,
    ReworkAnswer,
    StepAnswer,
)
from septet.contracts.names import READ_OUTGOING, REWORK, Step
from septet.contracts.solution import ExecutionAnswer, SolutionAnswer

JsonSchema = dict[str, Any]
AnyAnswer = StepAnswer | SolutionAnswer | ExecutionAnswer

_CHECKED_AFTERWARDS: Final = frozenset(
    {"minLength", "maxLength", "pattern", "minItems", "maxItems", "minimum", "maximum"}
)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The contract of one step's answer, and how Septet reads the answer."""

    contract: TypeAdapter[Any]
    plain: PlainReader | None = None
    """The function that reads an answer without JSON, such as a path; `None` if the answer has to be JSON."""
    only_alone: bool = False
    """Whether words around the JSON make the answer invalid, because an agent may quote an answer that it has
    read."""


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
PIPELINE_FORMS: Final[Mapping[Step, AnswerForm]] = MappingProxyType(
    {
        Step.BUILD_PLAN: AnswerForm(TypeAdapter(SolutionAnswer)),
        Step.IMPLEMENT_PLAN: AnswerForm(TypeAdapter(ExecutionAnswer)),
    }
)
"""The forms of the steps whose answers differ inside a pipeline."""

OTHER_FORMS: Final[Mapping[str, AnswerForm]] = MappingProxyType(
    {
        REWORK: AnswerForm(TypeAdapter(ReworkAnswer)),
        READ_OUTGOING: AnswerForm(TypeAdapter(ReadOutgoingAnswer), only_alone=True),
    }
)
"""The forms of other turns: a round on a pull request, and the reader's turn."""


def contract_of(name: str, *, in_pipeline: bool = False) -> TypeAdapter[Any]:
    """Return the pydantic adapter that checks a step's answer."""
    return _form_of(name, in_pipeline=in_pipeline).contract


def read_step_answer(
    name: str, text: str | None, structured: JsonValue = None, *, in_pipeline: bool = False
) -> Answer[AnyAnswer]:
    """Return a step's answer from its agent's last text or structured output; otherwise raise `AnswerError`."""
    form = _form_of(name, in_pipeline=in_pipeline)
    answer = read_answer(form.contract, text, structured=structured, plain=form.plain)
    if not form.only_alone or answer.parsed_by == "structured":
        return answer
    if not is_alone(answer_part(without_turn_end(text or ""))):
        reason = "There are words around the JSON, and it may be a quotation: write nothing but the JSON."
        raise AnswerError([reason])
    return answer


def read_pieces(name: str, pieces: Sequence[str], *, in_pipeline: bool = False) -> Answer[AnyAnswer] | None:
    """Return the answer in the joined pieces of a message, or else the only answer in single pieces, or `None`."""
    read = partial(read_step_answer, name, in_pipeline=in_pipeline)
    only_alone = _form_of(name, in_pipeline=in_pipeline).only_alone
    for texts in (["".join(pieces)], () if only_alone else pieces):
        found: dict[str, Answer[AnyAnswer]] = {}
        for text in texts:
            with suppress(AnswerError):
                answer = read(text)
                found[answer.value.model_dump_json()] = answer
        if len(found) == 1:
            return next(iter(found.values()))
    return None


def is_step_answer(text: str, *, name: str, in_pipeline: bool) -> bool:
    """Return whether a text contains a valid answer of a step."""
    with suppress(AnswerError):
        read_step_answer(name, text, in_pipeline=in_pipeline)
        return True
    return False


def schema_of(name: str, *, in_pipeline: bool = False) -> JsonSchema:
    """Return the JSON Schema of a step's answer, without references, with the fields' descriptions."""
    forms = forms_of(name, in_pipeline=in_pipeline)
    return forms[0] if len(forms) == 1 else {"anyOf": list(forms)}


@cache
def request_schema_of(name: str, *, in_pipeline: bool = False) -> JsonSchema:
    """Return the JSON Schema for a CLI that requests structured output from its model.

    Model APIs need one object at the root, with all keys required and few constraints. The result
    is the first schema of `forms_of`, without constraints. The contract is still checked. Never change the result.
    """
    return _without_bounds(forms_of(name, in_pipeline=in_pipeline)[0])


def forms_of(name: str, *, in_pipeline: bool = False) -> tuple[JsonSchema, ...]:
    """Return the JSON Schemas of the objects that can answer a step; several for a union of types."""
    contract = contract_of(name, in_pipeline=in_pipeline)
    schema = contract.json_schema()
    definitions = schema.pop("$defs", {})
    for form in (schema, *definitions.values()):
        for each in form.get("properties", {}).values():
            each.pop("title", None)  # it repeats the field's name
    forms = tuple(form for form in schema.get("anyOf", ())) or (schema,)
    return tuple(_resolve(form, definitions) for form in forms)


def _form_of(name: str, *, in_pipeline: bool) -> AnswerForm:
    if name in OTHER_FORMS:
        return OTHER_FORMS[name]
    step = Step(name)
    return (PIPELINE_FORMS.get(step) if in_pipeline else None) or ANSWER_FORMS[step]


def _resolve(schema: JsonSchema, definitions: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return a schema without references: each reference is replaced by its target."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].rpartition("/")[2]]
        schema = {**target, **{word: value for word, value in schema.items() if word != "$ref"}}
    return _with_inner(schema, lambda inner: _resolve(inner, definitions))


def _without_bounds(schema: JsonSchema) -> JsonSchema:
    members = {word: value for word, value in schema.items() if word not in _CHECKED_AFTERWARDS}
    return _with_inner(members, _without_bounds)


def _with_inner(schema: JsonSchema, change: Callable[[JsonSchema], JsonSchema]) -> JsonSchema:
    copy = dict(schema)
    if "properties" in schema:
        copy["properties"] = {name: change(member) for name, member in schema["properties"].items()}
    if "items" in schema:
        copy["items"] = change(schema["items"])
    if "anyOf" in schema:
        copy["anyOf"] = [change(form) for form in schema["anyOf"]]
    return copy


_FIRST: Final = """\
Your last message was not a valid answer for the step `{step}`.

Do not edit files. Do not run commands. Do not use any tool.
Return exactly one JSON object that matches this schema:

{schema}

No Markdown. No prose. No code fences.

What was wrong:
{reasons}
"""
_SECOND: Final = """\
The answer for the step `{step}` still cannot be read. Your work is done; only its result is missing, and a program
reads it. This is the last time that it is asked for.

What was wrong this time:
{reasons}

Do not edit files. Do not use any tool. Write exactly one JSON object, and let it be your whole message: the first
character is {{ and the last is }}. No greeting, no explanation, no Markdown, no prose, no code fences.

Its shape, where each <...> stands for a value of yours:

{shapes}

- Give every key that is shown, once, and no other key. Do not put the object inside another one.
- Put keys and strings in double quotes. Write a line break in a string as \\n and a double quote as \\".
- true and false have no quotes. No comments, and no comma after the last member.

The schema that it is checked against:

{schema}
"""


def finalizer_prompt(name: str, reasons: Sequence[str], attempt: int, *, in_pipeline: bool = False) -> str:
    """Return the finalizer's prompt; it is more explicit if `attempt` is above 1."""
    schema = schema_of(name, in_pipeline=in_pipeline)
    forms = forms_of(name, in_pipeline=in_pipeline)
    return (_FIRST if attempt == 1 else _SECOND).format(
        step=name,
        schema=json.dumps(schema, indent=2, ensure_ascii=False),
        shapes="\nor\n".join(shape_of(form) for form in forms),
        reasons="\n".join(f"- {reason}" for reason in reasons) or "- It held no JSON object.",
    )


def shape_of(schema: JsonSchema) -> str:
    """Return a short text that shows an agent the shape of a schema.

    The text is not JSON, so that it is never read as an answer if an agent returns the text.
    """
    if "enum" in schema:
        return "<" + " or ".join(json.dumps(value) for value in schema["enum"]) + ">"
    if "anyOf" in schema:
        return " or ".join(shape_of(form) for form in schema["anyOf"])
    match schema.get("type"):
        case "object":
            members = (f"{json.dumps(name)}: {shape_of(member)}" for name, member in schema["properties"].items())
            return "{" + ", ".join(members) + "}"
        case "array":
            return f"[{shape_of(schema['items'])}, ...]"
        case "boolean":
            return "<true or false>"
        case kind:
            return f"<{kind}>"
