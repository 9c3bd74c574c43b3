"""Describe the mistakes in a value in plain words instead of pydantic's messages."""

import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from pydantic import ValidationError

from septet.contracts.names import BUDGET_NAME, BUDGET_NAMES, SHA256

_MOST: Final = 10
"""The most mistakes in one message."""
_WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field",
    "json_invalid": "is not valid JSON",
    "json_type": "must be JSON",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "is too large a number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "string_unicode": "must be valid UTF-8 text",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "dict_type": "must be a JSON object",
    "mapping_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "model_attributes_type": "must be a JSON object",
    "none_required": "must be left out",
}
"""The messages of errors without a number, by pydantic's error type."""
_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "amount": ("limit",),
    "body": ("description",),
    "description": ("body",),
    "from": ("from_step",),
    "github_issue_number": ("issue",),
    "issue": ("github_issue_number",),
    "label": ("labels",),
    "repo": ("repository", "repository_url"),
    "repository": ("repository_url",),
    "repository_url": ("repository",),
    "stage": ("to",),
    "step": ("steps",),
    "to": ("stage",),
}
"""For a field's name on one interface, its names on the other interfaces."""


def describe_mistakes(error: ValidationError, fields: Iterable[str] = ()) -> str:
    """Return all mistakes, each with its place but never its value, such as `plan_sha256 is missing`.

    `fields` are the known names, from which a similar name is suggested for an unknown one.
    """
    details, names = error.errors(include_url=False, include_input=False), list(fields)
    return "; ".join(place_and_reason(detail, names) for detail in details[:_MOST])


def place_and_reason(detail: Mapping[str, Any], fields: Iterable[str] = (), *, within: str = "") -> str:
    """Return the place and the reason of one mistake, or only the reason if the whole input is wrong.

    `detail` is one of `ValidationError.errors()`; `within` is the name of the whole input.
    """
    reason = reason_of(detail)
    place = ".".join(str(part) for part in detail["loc"] if part != "[key]")
    if detail["type"] == "extra_forbidden":
        known = list(fields)
        elsewhere = [each for each in _ELSEWHERE.get(place, ()) if each in known]
        if meant := elsewhere or get_close_matches(place, known, n=1):
            reason += f" (did you mean {meant[0]}?)"
    if detail["type"] in _WHOLE and not place:
        return reason
    return f"{place or within or 'the input'} {reason}"


def find_odd_text(fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a mistake for the first field whose text is not UTF-8; `None` if there is none."""
    for name, value in fields.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return {"type": "string_unicode", "loc": (name,)}
    return None


def reason_of(detail: Mapping[str, Any]) -> str:
    """Return the reason of one mistake in words that can follow a field's name: `must be at least 1`."""
    kind, context = detail["type"], detail.get("ctx") or {}
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in _WITH_FIGURES:
        return _WITH_FIGURES[kind](context)
    message = str(detail["msg"]).removeprefix("Value error, ")
    return message if kind in _WHOLE else f"is not valid: {message[:1].lower()}{message[1:]}"


def _pattern(context: Mapping[str, Any]) -> str:
    pattern = str(context.get("pattern", ""))
    if SHA256.pattern in pattern:
        return "must be a SHA-256: 64 hexadecimal digits"
    if pattern == BUDGET_NAME:
        return f"must be {BUDGET_NAMES}"
    if "A-Za-z0-9._-" in pattern:
        return "must be made of letters, digits, dots, hyphens and underscores, and not be too long"
    if pattern == r"^[^\x00-\x1f]+$":
        return "must be one line, without control characters"
    return f"must match {pattern}"


def _choices(context: Mapping[str, Any]) -> str:
    return f"must be one of {str(context['expected']).replace(' or ', ', ')}"


def _at_least(count: int, what: str) -> str:
    return "must not be empty" if count == 1 else f"must have at least {count} {what}"


_WITH_FIGURES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "greater_than": lambda context: f"must be more than {context['gt']}",
    "greater_than_equal": lambda context: f"must be at least {context['ge']}",
    "less_than": lambda context: f"must be less than {context['lt']}",
    "less_than_equal": lambda context: f"must be at most {context['le']}",
    "string_too_long": lambda context: f"must have at most {context['max_length']:,} characters",
    "string_too_short": lambda context: _at_least(context["min_length"], "characters"),
    "too_long": lambda context: f"must have at most {context['max_length']:,} entries",
    "too_short": lambda context: _at_least(context["min_length"], "entries"),
    "string_pattern_mismatch": _pattern,
    "literal_error": _choices,
    "enum": _choices,
}
_WHOLE: Final = frozenset({"value_error"})
"""The error types of Septet's own models, whose messages are whole sentences."""
