"""What a tool is: a model of its input, which can be answered; its docstring tells an agent what it is for."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from inspect import cleandoc
from typing import Any, ClassVar, Final, Self, get_type_hints

from mcp.types import Tool, ToolAnnotations
from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from clients.operations.operations import Operations
from septet.contracts.replies import ErrorReply, Reply
from septet.contracts.wire import StrictWire, Wire
from septet.contracts.wording import describe_mistakes
from septet.errors import InvalidInputError

LOOKS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
"""It starts work that was not there, or lets work go on: agents cost money, and push branches."""
ENDS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
"""It ends an agent that works; its work is kept."""


class Call(StrictWire):
    """A call of a tool."""

    tool: ClassVar[str]
    hints: ClassVar[ToolAnnotations] = LOOKS

    @abstractmethod
    async def answer(self, operations: Operations) -> Reply:
        """Do what is asked.

        Raises:
            SeptetError: It cannot be done; the error says how to go on.
        """

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the call with these arguments.

        Raises:
            InvalidInputError: They are not those of the tool; the message names the first that is wrong.
        """
        try:
            return cls.model_validate_json(json.dumps(arguments), extra="forbid")
        except ValidationError as error:
            remedy = f"{cls.tool} takes {', '.join(_schema(cls, 'validation')['properties'])}."
            raise InvalidInputError(f"{describe_mistakes(error, cls.model_fields)}.", remedy=remedy) from error

    def from_here(self) -> Self:
        """Return it as an agent means it that works in the folder of this process."""
        return self

    @classmethod
    def as_tool(cls) -> Tool:
        """Return the tool as an agent is told of it."""
        reply = get_type_hints(cls.answer)["return"]
        return Tool(
            name=cls.tool,
            description=cleandoc(cls.__doc__ or ""),
            input_schema={key: value for key, value in _schema(cls, "validation").items() if key != "description"},
            output_schema=_any_of(_schema(reply, "serialization"), _schema(ErrorReply, "serialization")),
            annotations=cls.hints,
        )


class _Untitled(GenerateJsonSchema):
    """Schemas without the titles that only say the name again: an agent pays for every word."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Say no."""
        del schema
        return False


def _schema(model: type[Wire], mode: JsonSchemaMode) -> dict[str, Any]:
    schema = model.model_json_schema(mode=mode, schema_generator=_Untitled)
    return {key: value for key, value in schema.items() if key != "title"}


def _any_of(good: dict[str, Any], bad: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an answer: some clients hold errors against a tool's schema too."""
    definitions = good.pop("$defs", {}) | bad.pop("$defs", {})
    return {"type": "object", "anyOf": [good, bad], "$defs": definitions}
