"""What every wire value has in common."""

import ast
import sys
from collections.abc import Iterator, Mapping
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

_NO_DOCS: Mapping[str, str] = MappingProxyType({})


class Wire(BaseModel):
    """A frozen value of ours: loose types are refused, new fields have defaults, and unknown ones are ignored.

    Another release may have written it: one that is newer knows fields that this one does not.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="ignore",
        strict=True,
        defer_build=True,  # a program needs few of them
        ser_json_inf_nan="constants",
        json_schema_serialization_defaults_required=True,  # what is answered has all its fields
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> "JsonSchemaValue":
        """Return the schema as Pydantic makes it, with what the docstrings of the fields say."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, words in docs_of_fields(cls).items():
            if name in properties:
                properties[name].setdefault("description", words)
        return schema


class StrictWire(Wire):
    """A value that a person or an agent gives: a field that is unknown is a mistake, and refused.

    Read it with `extra="forbid"`: that holds for the values inside it too, whatever they say for themselves.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class InnerWire(Wire):
    """A value that people give inside of another one, which says how strictly both are read; ours carry it on."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"additionalProperties": False})


def docs_of_fields(model: type) -> Mapping[str, str]:
    """Return the docstrings of a model's fields, by name; those of inherited fields too.

    It reads the source. Pydantic can do that as it makes the class (`use_attribute_docstrings`), which took a
    worker's start a tenth of its time; few programs ever ask.
    """
    docs: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        for name in get_annotations(kind):
            docs.pop(name, None)  # a field that is declared anew does not mean what it meant
        docs |= _docs_in(kind.__module__).get(kind.__qualname__, _NO_DOCS)
    return docs


@cache
def _docs_in(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of a module's classes, by class and name."""
    source = getattr(sys.modules.get(module), "__file__", None)
    if source is None:
        return MappingProxyType({})
    return MappingProxyType(
        {
            node.name: dict(_docs_below(node))
            for node in ast.parse(Path(source).read_bytes()).body
            if isinstance(node, ast.ClassDef)
        }
    )


def _docs_below(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, doc in pairwise(node.body):
        match field, doc:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, cleandoc(words)
