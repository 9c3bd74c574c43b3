"""Detect a tool call that a model printed as text: no tool ran, so the turn's work is not done."""

import json
import re
from typing import Final

from septet.answers.json_values import value_spans
from septet.answers.reasoning import answer_part

# The calls of families of models, each at the start of a line.
_OPENING: Final = re.compile(
    r"^[ \t]*+(?:<(?:[\w-]+:)?(?:function_calls?|invoke|tool_calls?|tool_use)\b|<function=|\[TOOL_CALLS\]"
    r"|<[|\uff5c](?:tool|python)[_\u2581][^<>|\uff5c]*+[|\uff5c]?>|<\uff5cDSML\uff5c|<\|START_ACTION\|>)",
    re.MULTILINE,
)
_CLOSING: Final = re.compile(
    r"(?:</(?:[\w-]+:)?[\w-]+>|</?[|\uff5c]?[^<>|\uff5c]*+[|\uff5c][^<>|\uff5c]*+>|[}\]])\s*+\Z"
)
_NAMES: Final = frozenset({"name", "tool", "tool_name"})
_ARGUMENTS: Final = frozenset({"arguments", "parameters", "input", "args"})
_BESIDE: Final = frozenset({"type", "id"})


def ends_in_printed_call(text: str) -> bool:
    """Return whether a final text ends in a tool call, whole or cut off, or is only a call as JSON.

    A call inside a JSON value or a fence, or with prose behind it, is a quotation.
    """
    part = answer_part(text).strip()
    return _is_json_call(part) or _has_call_at_end(part)


def _has_call_at_end(text: str) -> bool:
    openings = [match.start() for match in _OPENING.finditer(text)]
    if not openings or any(start < openings[-1] < end for start, end in value_spans(text)):
        return False
    call = text[openings[-1] :]
    return _CLOSING.search(call) is not None or "</" not in call


def _is_json_call(text: str) -> bool:
    try:
        value = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    arguments = [value[key] for key in value.keys() & _ARGUMENTS]
    is_named = any(isinstance(value.get(key), str) for key in _NAMES)
    others = value.keys() - _NAMES - _ARGUMENTS - _BESIDE
    return is_named and not others and len(arguments) == 1 and isinstance(arguments[0], dict | str)
