"""Options that several commands share, and functions that declare a command's options.

`--help`, an error message and a completion import each module of options, so such a module imports little.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from inspect import Parameter as Given
from inspect import Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, dataclass_transform

from cyclopts import Parameter

from clients.cli.commands import load
from septet.contracts.names import AGENTS, SandboxChoice

if TYPE_CHECKING:
    from clients.operations.operations import Operations

AGENT_CHOICE: Final = f"{', '.join(AGENTS[:-1])} or {AGENTS[-1]}"
_Options = TypeVar("_Options")


@dataclass_transform(frozen_default=True)
def command_options(cls: type[_Options]) -> type[_Options]:
    """Turn a class into a command's options; the fields before `KW_ONLY` become positional arguments."""
    made: Any = dataclass(frozen=True, slots=True)(cls)
    fields = signature(made).parameters.values()
    arguments = [
        each.replace(kind=Given.POSITIONAL_ONLY) for each in fields if each.kind is not Given.KEYWORD_ONLY
    ]
    made.__signature__ = Signature([*arguments, *(each for each in fields if each.kind is Given.KEYWORD_ONLY)])
    return made  # type: ignore[no-any-return]


@dataclass_transform(frozen_default=True, kw_only_default=True)
def option_group(cls: type[_Options]) -> type[_Options]:
    """Turn a class into a group of options for several commands."""
    return Parameter(name="*")(dataclass(frozen=True, slots=True, kw_only=True)(cls))


def option(
    *names: str,
    help: str,  # noqa: A002 -- the library's word
    metavar: str | None = None,
    completer: Callable[..., Any] | None = None,
    least: float | None = None,
    most: float | None = None,
) -> Parameter:
    """Return the parser's description of an option; without `names`, the option has the name of its field."""
    return Parameter(
        name=names or None,
        metavar=metavar,
        help=help,
        completer=completer,
        converter=_converter(least, most),
        allow_leading_hyphen=bool(metavar),
        allow_repeating=True,
        negative="",
    )


def argument(
    metavar: str,
    help: str,  # noqa: A002 -- as above
    completer: Callable[..., Any] | None = None,
    least: float | None = None,
) -> Parameter:
    """Return the parser's description of an argument."""
    return Parameter(
        metavar=metavar, help=help, completer=completer, converter=_converter(least, None), negative=""
    )


def _converter(least: float | None, most: float | None) -> Callable[..., Any]:
    """Return the function that converts a value; the function imports slow modules only when it is called."""
    return lambda kind, tokens: load("clients.cli.parsing.values:convert")(kind, tokens, least, most)


def completed_by(name: str) -> Callable[[Any], list[str]]:
    """Return a completer that calls the function `name` of the module `completion`, imported on first use."""
    return lambda context: list(load(f"clients.cli.parsing.completion:{name}")(context.incomplete))


Json = Annotated[bool, option("--json", help="Answer with one JSON object on stdout.")]
Address = Annotated[
    str | None,
    option(metavar="HOST:PORT", help="The Temporal server. [default: TEMPORAL_ADDRESS, else that of `septet up`]"),
]
Id = Annotated[str, argument("ID", help="The work order, such as wo-42.", completer=completed_by("ids"))]
Ids = Annotated[
    list[str] | None, argument("ID", help="One work order or more, such as wo-42.", completer=completed_by("ids"))
]
Sandbox = Annotated[
    SandboxChoice | None, option("--sandbox", help="How agents are confined. [default: SEPTET_SANDBOX]")
]
Wait = Annotated[bool, option("--wait", help="Wait until it ends, and show it live.")]
Why = Annotated[str, option(metavar="TEXT", help="Your reason, for its history.")]
Next = Annotated[str, option(metavar="NEXT", help="Continue a list: the `next` of its last page.")]
Limit = Annotated[int, option(metavar="N", help="How many to list at most.", least=1, most=1000)]


@option_group
class Server:
    """The options that end a command's list: the server that it calls, and whether it prints JSON."""

    address: Address = None
    as_json: Json = False

    async def connect(self) -> "Operations":
        """Connect to the server, and return the operations that use this connection.

        Raises:
            ServerNotReachedError: No server answers.
        """
        connected: Operations = await load("clients.operations.operations:connect_operations")(
            load("septet.settings:load_settings")(), self.address
        )
        return connected


SERVER: Final = Server()


@command_options
class DoctorOptions:
    """The options of `septet doctor`."""

    _: KW_ONLY
    repo: Annotated[
        str | None, option(metavar="REPO", help="Look at this repository's commands and settings too.")
    ] = None
    agent: Annotated[
        str | None, option("--try", metavar="AGENT", help="Only try this agent, with one short turn.")
    ] = None
    server: Server = SERVER
