"""A forge's published API description, and the deviations of its fake and of requests to it."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from fakes.forges.errata import ERRATA
from jsonschema import Draft4Validator

DATA = Path(__file__).parents[2] / "data" / "openapi"
_GOOD = range(200, 300)


class ForgeDescription:
    """The used part of a published description: see `scripts/describe-forge`."""

    def __init__(self, name: str) -> None:
        described = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
        for erratum in ERRATA.get(name, ()):
            erratum.correct(described)
        self.about: dict[str, Any] = described["about"]
        self._paths: dict[str, Any] = described["paths"]
        self._known: dict[str, Any] = described["known"]
        is_swagger = any("/definitions/" in reference for reference in self._known)
        self._nulls = is_swagger or self.about.get("is_silent_on_null", False)
        """Whether null is allowed everywhere: Swagger 2 does not describe null, nor does GitLab for its answers."""
        self._brackets = name == "gitlab"
        """Whether lists may also be requested as `name[]`, as GitLab's page on its REST API allows."""
        self._definitions: dict[str, Any] = {}

    def deviations(
        self, method: str, path: str, query: dict[str, list[str]], body: object, status: int, answer: object
    ) -> Iterator[str]:
        """Yield all deviations of the request, and those of the present fields of a good answer."""
        operation = self._operation(method, path)
        where = f"{method} {path}"
        if operation is None:
            yield f"{where} is not described"
            return
        parameters = [self.resolved(each) for each in operation["parameters"]]
        yield from (f"{where}: {wrong}" for wrong in self._wrong_parameters(parameters, query))
        if status in _GOOD and body is not None and (schema := self._body(operation, parameters)) is not None:
            known = self.resolved(schema).get("properties", {})
            unknown = sorted(set(body) - set(known)) if known and isinstance(body, dict) else []
            yield from (f"{where}, body: there is no field {name}" for name in unknown)
            yield from self._errors(f"{where}, body", self._translated(schema, strict=True), body)
        if status in _GOOD:
            response = operation["responses"].get(str(status))
            if response is None:
                yield f"{where}: {status} is not described"
            elif (schema := self._schema(self.resolved(response))) is not None:
                yield from self._errors(f"{where}, answer", self._translated(schema, strict=False), answer)

    def _wrong_parameters(self, parameters: list[Any], query: dict[str, list[str]]) -> Iterator[str]:
        known = {each["name"]: each.get("schema", each) for each in parameters if each["in"] == "query"}
        lists: dict[str, Any] = {
            f"{name}[]": {} for name, schema in known.items() if schema.get("type") == "array"
        }
        for name, values in sorted(query.items()):
            schema = {**known, **(lists if self._brackets else {})}.get(name)
            if schema is None:
                yield f"there is no parameter {name}"
            elif wrong := [each for each in values if each not in schema.get("enum", values)]:
                yield f"the parameter {name} is never {wrong[0]}"

    def answer_schema(self, method: str, path: str, status: int) -> Any:
        operation = self._operation(method, path)
        response = operation["responses"].get(str(status)) if operation is not None else None
        return self._schema(self.resolved(response)) if response is not None else None

    def _operation(self, method: str, path: str) -> Any:
        # `ref` may hold slashes; a path without placeholders is tried first.
        for template in sorted(self._paths, key=lambda each: each.count("{")):
            pattern = re.sub(r"\\{ref\\}", ".+", re.escape(template))
            pattern = re.sub(r"\\{\w+\\}", "[^/]+", pattern)
            if method in self._paths[template] and re.fullmatch(pattern, path):
                return self._paths[template][method]
        return None

    def resolved(self, value: Any) -> Any:
        while "$ref" in value:
            value = self._known[value["$ref"]]
        return value

    def _body(self, operation: Any, parameters: list[Any]) -> Any:
        if "requestBody" in operation:
            return self._schema(self.resolved(operation["requestBody"]))
        return next((each["schema"] for each in parameters if each["in"] == "body"), None)

    @staticmethod
    def _schema(thing: Any) -> Any:
        return thing.get("schema") or thing.get("content", {}).get("application/json", {}).get("schema")

    def _translated(self, schema: Any, *, strict: bool, combines: bool = False) -> Any:
        if isinstance(schema, list):
            return [self._translated(each, strict=strict, combines=combines) for each in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return {"$ref": self._defined(schema["$ref"], strict=strict, combines=combines)}
        made: dict[str, Any] = {}
        for key, value in schema.items():
            if key == "properties":
                made[key] = {name: self._translated(each, strict=strict) for name, each in value.items()}
            elif key in {"oneOf", "anyOf", "allOf"}:
                name = "anyOf" if key == "oneOf" and not strict else key
                made[name] = self._translated(value, strict=strict, combines=key == "allOf")
            elif key == "items" or (key == "additionalProperties" and isinstance(value, dict)):
                made[key] = self._translated(value, strict=strict)
            elif key not in {"nullable", "format"} and (strict or key != "required"):
                made[key] = value
        if not strict and "properties" in made and not combines:
            made.setdefault("additionalProperties", False)
        is_nullable = schema.get("nullable") or (self._nulls and not strict)
        return {"anyOf": [made, {"type": "null"}]} if is_nullable else made

    def _defined(self, reference: str, *, strict: bool, combines: bool) -> str:
        """Translate a referenced schema once, for it may refer to itself; return its new reference."""
        key = f"{'strict' if strict else 'loose'}-{combines:d}-{reference.rpartition('/')[2]}"
        if key not in self._definitions:
            self._definitions[key] = {}
            self._definitions[key] = self._translated(self._known[reference], strict=strict, combines=combines)
        return f"#/definitions/{key}"

    def _errors(self, where: str, schema: Any, value: object) -> Iterator[str]:
        whole = {"allOf": [schema], "definitions": self._definitions}
        for error in Draft4Validator(whole).iter_errors(value):
            for cause in _causes(error):
                path = "/".join(map(str, cause.absolute_path))
                yield f"{where}: {path}: {cause.message[:300]}"


def _causes(error: Any) -> Iterator[Any]:
    """Yield the errors within alternatives, without the alternative of null."""
    deeper = [each for each in error.context if each.validator_value != "null"]
    if not deeper:
        yield error
    for each in deeper:
        yield from _causes(each)


@cache
def description_of(name: str) -> ForgeDescription:
    return ForgeDescription(name)
