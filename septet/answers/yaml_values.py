"""Find the values that stand in the YAML fences of a text.

YAML is read as JSON in another syntax. A plain scalar is text but for null, true, false and such numbers as no
two readers of YAML read differently: `no` is no boolean, `12:30` and `1e3` no numbers and `2026-01-01` no date.
Aliases, tags, keys that are no text and keys that stand twice are refused.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

import yaml
from pydantic import JsonValue

from septet.answers.json_reader import MAX_DEPTH
from septet.answers.json_values import JsonCandidate
from septet.answers.markdown import code_blocks

MAX_MARKDOWN_CHARACTERS: Final = 256 * 1024
"""The last part of a text, in which fences are looked for."""
MAX_YAML_CHARACTERS: Final = 64 * 1024
"""YAML in all fences together: PyYAML takes a second for some 100 KB."""

_YAML_FENCE: Final = re.compile(r"(?:```|~~~)[ \t]*+ya?ml\b", re.IGNORECASE)
_LANGUAGES: Final = frozenset({"yaml", "yml"})
# PyYAML lets the last two through from directives and escapes with absurd numbers.
_YAML_ERRORS: Final = (yaml.YAMLError, ValueError, OverflowError)
_WORDS: Final[dict[str, JsonValue]] = {
    **dict.fromkeys(("", "~", "null", "Null"), None),
    **dict.fromkeys(("true", "True"), True),
    **dict.fromkeys(("false", "False"), False),
}
# Those numbers that every version of YAML takes for the same number.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][+-][0-9]+)?)?")


def yaml_values_in(text: str) -> Iterator[JsonCandidate]:
    """Yield what stands in a text's YAML fences in their order, the broken values as well."""
    text = text[-MAX_MARKDOWN_CHARACTERS:]
    if not _YAML_FENCE.search(text):
        return
    sources = [block.content for block in code_blocks(text) if block.language.lower() in _LANGUAGES]
    if sum(map(len, sources)) > MAX_YAML_CHARACTERS:
        yield JsonCandidate(None, "fence", faults=(f"more than {MAX_YAML_CHARACTERS} characters of YAML",))
        return
    for source in sources:
        try:
            yield JsonCandidate(read_yaml(source), "fence")
        except _YAML_ERRORS as error:
            yield JsonCandidate(None, "fence", faults=(f"the YAML cannot be read: {error}",))


def read_yaml(source: str) -> JsonValue:
    """Read one YAML document as JSON's own types; raises one of `_YAML_ERRORS`."""
    events = yaml.parse(source, Loader=_ShallowLoader)
    documents = [_value(next(events), events) for event in events if isinstance(event, yaml.DocumentStartEvent)]
    if len(documents) != 1:
        raise yaml.YAMLError(f"{len(documents)} documents")
    return documents[0]


class _ShallowLoader(yaml.SafeLoader):
    """PyYAML's time grows with the square of the depth of brackets: it is bounded where they are scanned."""

    def fetch_flow_collection_start(self, token_class: type[yaml.Token]) -> None:
        """Open a bracket, but not too many."""
        if self.flow_level == MAX_DEPTH:
            raise yaml.YAMLError(f"more than {MAX_DEPTH} brackets inside one another")
        super().fetch_flow_collection_start(token_class)


def _value(event: yaml.Event, events: Iterator[yaml.Event], depth: int = 0) -> JsonValue:
    """Build the value that begins with `event`, and take the rest of its events."""
    if depth == MAX_DEPTH:
        raise yaml.YAMLError(f"more than {MAX_DEPTH} values inside one another")
    match event:
        case yaml.ScalarEvent(tag=None):
            return _scalar(event.value) if event.implicit[0] else event.value
        case yaml.SequenceStartEvent(tag=None):
            return [_value(member, events, depth + 1) for member in _until(yaml.SequenceEndEvent, events)]
        case yaml.MappingStartEvent(tag=None):
            return _mapping(events, depth)
        case _:
            raise yaml.YAMLError("an alias or a tag")


def _mapping(events: Iterator[yaml.Event], depth: int) -> JsonValue:
    mapping: dict[str, JsonValue] = {}
    for event in _until(yaml.MappingEndEvent, events):
        key = _value(event, events, depth + 1)
        if not isinstance(key, str) or key in mapping:
            raise yaml.YAMLError("a key that is not text, or a duplicate key")
        mapping[key] = _value(next(events), events, depth + 1)
    return mapping


def _until(end: type[yaml.Event], events: Iterator[yaml.Event]) -> Iterator[yaml.Event]:
    """Yield the first event of each member; the member's value takes the others of its own."""
    for event in events:
        if isinstance(event, end):
            return
        yield event


def _scalar(text: str) -> JsonValue:
    if text in _WORDS:
        return _WORDS[text]
    value: JsonValue = json.loads(text) if _NUMBER.fullmatch(text) else text
    return value
