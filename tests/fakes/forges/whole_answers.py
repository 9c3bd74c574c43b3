"""Answers with all fields that a forge's description requires, also those that no client reads."""

from typing import Any, Final
from urllib.parse import unquote

from fakes.forges.description import ForgeDescription
from fakes.forges.state import Answer, Asked, Json

_SAMPLES: Final = {
    "uri": "https://forge.example/",
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "email": "someone@forge.example",
}
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


class WholeAnswers:
    """Fills missing fields of answers with the simplest values that a description allows."""

    def __init__(self, description: ForgeDescription) -> None:
        self._description = description

    def whole(self, asked: Asked, answer: Answer) -> Answer:
        status, value = answer
        schema = self._description.answer_schema(asked.method, unquote(asked.path), status)
        return (status, value) if schema is None else (status, self.completed(schema, value))

    def completed(self, schema: Json, value: Json) -> Json:
        """Return a value with all required fields; present fields stay, right or wrong."""
        schema = self._description.resolved(schema)
        for one in schema.get("allOf", ()):
            value = self.completed(one, value)
        alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        if alternatives and (fitting := [each for each in alternatives if self._fits(each, value)]):
            value = self.completed(fitting[0], value)
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            kept = {name: self.completed(properties.get(name, {}), each) for name, each in value.items()}
            missing = [name for name in schema.get("required", ()) if name not in kept]
            return kept | {name: self._sample(properties.get(name, {})) for name in missing}
        if isinstance(value, list):
            return [self.completed(schema.get("items", {}), each) for each in value]
        return value

    def _sample(self, schema: Json) -> Json:
        schema = self._description.resolved(schema)
        if schema.get("nullable"):
            return None
        if "enum" in schema:
            return schema["enum"][0]
        alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        if alternatives:
            return self._sample(alternatives[0])
        kind = schema.get("type", "object")
        if kind == "object":
            return self.completed(schema, {})
        if kind == "string":
            return _SAMPLES.get(schema.get("format", ""), "")
        plain: dict[str, Any] = {"array": [], "boolean": False, "integer": 1, "number": 1}
        return plain[kind]

    def _fits(self, schema: Json, value: Json) -> bool:
        schema = self._description.resolved(schema)
        if value is None:
            return bool(schema.get("nullable"))
        return isinstance(value, _TYPES.get(schema.get("type", "object"), dict))
