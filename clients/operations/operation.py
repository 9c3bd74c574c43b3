"""A row of the table of operations, from which HTTP routes and agents' tools are made."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, cleandoc, signature
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field, StringConstraints

from septet.contracts.replies import Reply
from septet.contracts.wire import Wire

Effect = Literal["reads", "adds", "ends", "restores"]
"""The effect of a tool: the tool changes nothing, starts work that costs money, ends work, or makes a folder."""
OrderId = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$"),
    Field(description="The task's id, such as wo-42, as `board`, `run` and `create_task` return it."),
]
PipelineId = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,40}$"),
    Field(description="The pipeline's id, as `list_pipelines` and `create_pipeline` return it."),
]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: a function of `Operations` and of arguments, whose docstring people and agents read.

    People read the first paragraph of the docstring in the HTTP reference; agents read the whole docstring. An
    argument whose type is a model is the body of an HTTP request. A tool takes the fields of the model instead.
    """

    run: Callable[..., Awaitable[Any]]
    route: str = ""
    """The method and the path of the HTTP route; empty for an operation without a route in the table."""
    tag: str = ""
    """The section of the HTTP reference."""
    may_miss: bool = True
    """Whether the operation's subject may be missing, so that the route may answer 404."""
    creates: bool = False
    tool: str = ""
    """The name of the agents' tool; empty for an operation without a tool."""
    effect: Effect = "reads"
    for_tool: Mapping[str, Any] = field(default_factory=dict)
    """The types and defaults that the tool has instead, by the names of arguments or fields."""
    before_tool: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    """The function that changes an agent's arguments before they are parsed."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.run.__name__

    @property
    def text(self) -> str:
        """The docstring of the function."""
        return cleandoc(self.run.__doc__ or "")

    @property
    def arguments(self) -> list[Parameter]:
        """The arguments of the function, with their types."""
        types = get_type_hints(self.run, include_extras=True)
        _, *others = signature(self.run).parameters.values()
        return [each.replace(annotation=types[each.name]) for each in others]

    @property
    def reply(self) -> type[Reply]:
        """The type of the reply."""
        reply: type[Reply] = get_type_hints(self.run)["return"]
        return reply


def is_body(argument: Parameter) -> bool:
    """Return whether the type of an argument is a model."""
    return isinstance(argument.annotation, type) and issubclass(argument.annotation, Wire)
