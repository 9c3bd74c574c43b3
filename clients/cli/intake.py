"""`septet intake`: issues with a label become work orders by themselves."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Final

from cyclopts import Parameter
from pydantic import ValidationError

from clients.cli import options as given
from clients.cli.options import argument, option
from clients.cli.reply import CommandReply
from clients.cli.server import SERVER, Server
from clients.cli.wrapping import say
from clients.starting.repository_path import whole_path
from septet.contracts.intake import IntakeInput, IntakeView
from septet.contracts.wording import reason_of
from septet.errors import InvalidInputError
from septet.system.preview import printable

_FIELDS: Final = {"repo": "repository", "every": "every_seconds"}
"""The input's fields that have other names than their options."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeOptions:
    """An intake as the command line gives it: the fields of its input."""

    repo: given.Repo
    label: Annotated[
        str | None, option(metavar="LABEL", help="Take issues with this label. [default: septet]")
    ] = None
    every: Annotated[
        int | None, option(metavar="SECONDS", help="Seconds between checks of the forge. [default: 300]")
    ] = None
    agent: given.Agent = None
    model: given.Model = None
    project: given.Project = None
    at_once: Annotated[bool, option("--at-once", help="Begin without waiting for a turn on the board.")] = False
    approve_plan: Annotated[bool, option("--approve-plan", help="Wait for approval after planning.")] = False
    draft: given.Draft = False


Id = Annotated[str, argument(metavar="ID", help="The intake, as `septet intake list` shows it.")]


async def add(*, options: IntakeOptions, server: Server = SERVER) -> CommandReply:
    """Start a work order for each open issue with a label, now and from now on."""
    intake = _intake(options)
    operations = await server.connect()
    answer = await operations.starting.add_intake(intake)
    return CommandReply.from_reply(answer, lambda: _show((answer.intake,)))


async def list_intakes(*, server: Server = SERVER) -> CommandReply:
    """List the intakes."""
    operations = await server.connect()
    answer = await operations.intakes.list()
    return CommandReply.from_reply(answer, lambda: _show(answer.intakes))


async def remove(intake_id: Id, /, *, server: Server = SERVER) -> CommandReply:
    """Stop taking issues; work orders that have started continue."""
    operations = await server.connect()
    answer = await operations.intakes.remove(intake_id)
    return CommandReply.from_reply(answer, lambda: say(f"{answer.removed} was removed."))


def _show(intakes: Sequence[IntakeView]) -> None:

    if not intakes:
        say("There are no intakes. Add one: septet intake add --repo REPO")
    for each in intakes:
        say(printable(f"{each.id}  {each.repository}  label {each.label}, every {each.every_seconds} s"))


def _intake(options: IntakeOptions) -> IntakeInput:
    """Return what is to be taken.

    Raises:
        InvalidInputError: A value is wrong; the message names the option.
    """
    fields = {name: value for name, value in asdict(options).items() if value is not None}
    fields = {_FIELDS.get(name, name): value for name, value in fields.items()}
    try:
        return IntakeInput.model_validate({**fields, "repository": whole_path(options.repo)})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = str(first["loc"][0])
        wrong = next((name for name, own in _FIELDS.items() if own == field), field).replace("_", "-")
        raise InvalidInputError(f"--{wrong} {reason_of(first)}.") from error
