"""The finalizer's prompts, which request only the answer of a session, as JSON, without further work."""

import json
from collections.abc import Sequence
from typing import Final

from septet.answers.steps import JsonSchema, forms_of, schema_of

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
    """Return the first prompt, or the more explicit prompt if `attempt` is a later number."""
    schema = schema_of(name, in_pipeline=in_pipeline)
    forms = forms_of(name, in_pipeline=in_pipeline)
    return (_FIRST if attempt == 1 else _SECOND).format(
        step=name,
        schema=json.dumps(schema, indent=2, ensure_ascii=False),
        shapes="\nor\n".join(shape_of(form) for form in forms),
        reasons="\n".join(f"- {reason}" for reason in reasons) or "- It held no JSON object.",
    )


def shape_of(schema: JsonSchema) -> str:
    """Return the smallest text that shows a schema's shape.

    Its placeholders are not JSON, so that a returned shape is never read as an answer.
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
