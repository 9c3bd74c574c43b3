"""The MCP tools, made from the operations."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter
from typing import Any, Final

from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import ConfigDict, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from clients.operations.operation import Effect, Operation, is_body
from clients.operations.operations import Operations
from clients.operations.order_operations import ORDER_OPERATIONS
from clients.operations.project_operations import BUDGET_OPERATIONS
from clients.starting.repository_path import whole_path
from septet.contracts.replies import ErrorReply, Reply
from septet.contracts.wire import StrictWire, Wire
from septet.contracts.wording import describe_mistakes
from septet.errors import InvalidInputError
from septet.system.masking import mask_json

_HINTS: Final[Mapping[Effect, ToolAnnotations]] = {
    "reads": ToolAnnotations(read_only_hint=True, open_world_hint=False),
    "adds": ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True),
    "ends": ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
    "restores": ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False),
}
_IDS: Final = frozenset({"order_id", "pipeline_id"})
"""The names of operations' arguments; a tool names each of them `id`."""
_DEFAULTS: Final = {Parameter.empty: ...}


class _ToolInput(StrictWire):
    """The base class of tools' inputs; their schemas omit the examples, which are for the HTTP reference."""

    model_config = ConfigDict(json_schema_extra=None)


@dataclass(frozen=True)
class AgentTool:
    """One operation as an MCP tool."""

    operation: Operation

    @cached_property
    def takes(self) -> type[StrictWire]:
        """The class of the tool's input: the operation's arguments, with a body's fields instead of the body."""
        changes, arguments = self.operation.for_tool, self.operation.arguments
        fields: dict[str, Any] = {
            _field_of(each): changes.get(each.name) or (each.annotation, _DEFAULTS.get(each.default, each.default))
            for each in arguments
            if not is_body(each) and changes.get(each.name, ()) is not None
        }
        names = {each.name for each in arguments}
        of_calls: Any = {name: change for name, change in changes.items() if name not in names}
        own = create_model("OfTool", __base__=_ToolInput, **fields)
        bases = (*(each.annotation for each in arguments if is_body(each)), own)
        return create_model(self.operation.tool, __base__=bases, **of_calls)

    def as_tool(self) -> Tool:
        """Return MCP's description of the tool, with the schemas of its input and reply."""
        takes = _schema(self.takes, "validation")
        # Some clients check errors against a tool's schema too.
        good, bad = _schema(self.operation.reply, "serialization"), _schema(ErrorReply, "serialization")
        definitions = good.pop("$defs", {}) | bad.pop("$defs", {})
        return Tool(
            name=self.operation.tool,
            description=self.operation.text,
            input_schema={key: value for key, value in takes.items() if key != "description"},
            output_schema={"type": "object", "anyOf": [good, bad], "$defs": definitions},
            annotations=_HINTS[self.operation.effect],
        )

    def read(self, arguments: Mapping[str, Any], *, beside: bool = False) -> StrictWire:
        """Return the tool's input, made from the arguments that an agent gave.

        With `beside`, the agent works in this process's folder, so a repository may be a relative path.

        Raises:
            InvalidInputError: The arguments do not fit the tool; the message names the first wrong argument.
        """
        try:
            text = json.dumps(self.operation.before_tool(arguments))
            request = self.takes.model_validate_json(text, extra="forbid")
        except ValidationError as error:
            remedy = f"{self.operation.tool} takes {', '.join(_schema(self.takes, 'validation')['properties'])}."
            message = f"{describe_mistakes(error, self.takes.model_fields)}."
            raise InvalidInputError(message, remedy=remedy) from error
        if beside and (repository := getattr(request, "repository", None)) is not None:
            return request.model_copy(update={"repository": whole_path(repository)})
        return request

    async def answer(self, operations: Operations, request: StrictWire) -> Reply:
        """Carry out the operation with an input that `read` returned.

        Raises:
            SeptetError: The operation failed or was refused.
        """
        arguments = {}
        for each in self.operation.arguments:
            if is_body(each):
                kind = each.annotation
                arguments[each.name] = kind(**{name: getattr(request, name) for name in kind.model_fields})
            elif hasattr(request, _field_of(each)):
                arguments[each.name] = getattr(request, _field_of(each))
        reply: Reply = await self.operation.run(operations, **arguments)
        return reply


TOOLS: Final = {each.tool: AgentTool(each) for each in (*ORDER_OPERATIONS, *BUDGET_OPERATIONS) if each.tool}


def tool_result(reply: Reply | ErrorReply) -> CallToolResult:
    """Return a reply as MCP's result, both as an object and as text, with masked keys."""
    structured = json.loads(mask_json(reply.model_dump_json().encode()))
    text = TextContent(text=json.dumps(structured, ensure_ascii=False))
    return CallToolResult(content=[text], structured_content=structured, is_error=not reply.ok)


def _field_of(argument: Parameter) -> str:
    return "id" if argument.name in _IDS else argument.name


class _Untitled(GenerateJsonSchema):
    """Makes JSON Schemas without titles, because a title only repeats the name."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Return false: no field gets a title."""
        del schema
        return False


def _schema(model: type[Wire], mode: JsonSchemaMode) -> dict[str, Any]:
    schema = model.model_json_schema(mode=mode, schema_generator=_Untitled)
    return {key: value for key, value in schema.items() if key != "title"}
