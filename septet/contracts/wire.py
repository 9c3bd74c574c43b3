"""What every wire value has in common."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    """A frozen value of ours: loose types are refused, new fields have defaults, and unknown ones are ignored.

    Another release may have written it: one that is newer knows fields that this one does not.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="ignore",
        strict=True,
        use_attribute_docstrings=True,
        ser_json_inf_nan="constants",
        json_schema_serialization_defaults_required=True,  # what is answered has all its fields
    )


class StrictWire(Wire):
    """A value that a person or an agent gives: a field that is unknown is a mistake, and refused.

    Read it with `extra="forbid"`: that holds for the values inside it too, whatever they say for themselves.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class InnerWire(Wire):
    """A value that people give inside of another one, which says how strictly both are read; ours carry it on."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"additionalProperties": False})
