"""The base classes of all values that clients, workflows and workers exchange."""

import ast
import sys
from collections.abc import Mapping
from functools import cache
from inspect import cleandoc, get_annotations
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class Wire(BaseModel):
    """An immutable value, without conversion of types; unknown fields are ignored, and new fields have defaults.

    A newer release may send fields that this release does not know.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="ignore",
        strict=True,
        defer_build=True,  # most programs need few of the models
        ser_json_inf_nan="constants",
        json_schema_serialization_defaults_required=True,  # a reply has all its fields
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> "JsonSchemaValue":
        """Return Pydantic's schema, with the fields' docstrings as descriptions."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, words in docs_of_fields(cls).items():
            if name in properties:
                properties[name].setdefault("description", words)
        return schema


class StrictWire(Wire):
    """A value from a person or an agent, in which an unknown field is refused as a mistake.

    Validate it with `extra="forbid"`, which applies to inner values too.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class InnerWire(Wire):
    """A value inside others; the outer value's class decides whether unknown fields are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"additionalProperties": False})


def docs_of_fields(model: type) -> Mapping[str, str]:
    """Return the docstrings of a model's fields by name, including inherited fields.

    The source is read only when a schema is needed, because reading it for each class would slow each start.
    """
    docs: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        for name in get_annotations(kind):
            docs.pop(name, None)  # a redeclared field has another meaning
        docs |= _docs_in(kind.__module__).get(kind.__qualname__, {})
    return docs


@cache
def _docs_in(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of the fields of a module's classes, by class and field."""
    source = getattr(sys.modules.get(module), "__file__", None)
    docs: dict[str, dict[str, str]] = {}
    for node in ast.parse(Path(source).read_bytes()).body if source is not None else ():
        if isinstance(node, ast.ClassDef):
            docs[node.name] = {}
            for field, doc in pairwise(node.body):
                match field, doc:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                        docs[node.name][name] = cleandoc(words)
    return MappingProxyType(docs)
