"""A part of Linear's schema, executed over plain dictionaries; a missing field has its type's least value."""

from functools import cache
from pathlib import Path
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
    get_named_type,
)

_FILE = Path(__file__).parents[2] / "data" / "linear" / "schema.graphql"
LONG_AGO = "2026-01-01T00:00:00.000Z"
_LEAST: dict[str, Any] = {
    "ID": "",
    "String": "",
    "Int": 0,
    "Float": 0.0,
    "Boolean": False,
    "DateTime": LONG_AGO,
    "JSON": {},
    "JSONObject": {},
}


@cache
def schema() -> GraphQLSchema:
    """Return the schema; a content's `type` chooses its kind."""
    built = build_schema(_FILE.read_text())
    content = built.type_map["AgentActivityContent"]
    assert isinstance(content, GraphQLUnionType)
    content.resolve_type = lambda value, *_: f"AgentActivity{value['type'].capitalize()}Content"
    return built


def resolve(source: dict[str, Any], info: GraphQLResolveInfo[Any], **arguments: Any) -> Any:
    """Return a field: the dictionary's value, its function's result, or the type's least value."""
    if info.field_name in source:
        value = source[info.field_name]
        return value(**arguments) if callable(value) else value
    if not isinstance(info.return_type, GraphQLNonNull):
        return None
    kind = info.return_type.of_type
    if isinstance(kind, GraphQLList):
        return []
    if isinstance(kind, GraphQLEnumType):
        return next(iter(kind.values))
    return _LEAST[kind.name] if isinstance(kind, GraphQLScalarType) else {}


def deviations(kind: str, value: dict[str, Any]) -> list[str]:
    described = schema().type_map[kind]
    assert isinstance(described, GraphQLObjectType)
    told = [f"{kind} has no {name}" for name in value if name not in described.fields]
    for name, field in described.fields.items():
        inner = get_named_type(field.type)
        if value.get(name) is None:
            told += [f"{kind} lacks {name}"] if isinstance(field.type, GraphQLNonNull) else []
        elif isinstance(inner, GraphQLObjectType) and isinstance(value[name], dict):
            told += deviations(inner.name, value[name])
    return told
