"""What every wire value has in common."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, ConfigDict

from septet.contracts.field_docs import docs_of_fields

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


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
