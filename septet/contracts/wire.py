"""What every wire value has in common."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    """A frozen value of ours: unknown fields and loose types are refused, new fields have defaults."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        ser_json_inf_nan="constants",
        json_schema_serialization_defaults_required=True,  # what is answered has all its fields
    )
