"""`septet intake`: issues with a label become work orders by themselves."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from clients.cli import options as given
from clients.cli.grouped_help import command_group
from clients.cli.reply import CommandReply
from clients.cli.wrapping import say
from septet.errors import InvalidInputError

if TYPE_CHECKING:
    from clients.operations import Operations
    from septet.contracts.intake import IntakeInput
    from septet.contracts.intake_replies import IntakeView

app = command_group("intake", "Turn issues with a label into work orders.")
_FIELDS: Final = {"repo": "repository", "every": "every_seconds"}
"""The input's fields that have other names than their options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeOptions:
    """An intake as the command line gives it: the fields of its input."""

    repo: given.Repo
    label: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Take issues with this label. [default: septet]")
    ] = None
    every: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Seconds between checks of the forge. [default: 300]")
    ] = None
    agent: given.Agent = None
    model: given.Model = None
    project: given.Project = None
    at_once: Annotated[bool, typer.Option("--at-once", help="Begin without waiting for a turn on the board.")] = (
        False
    )
    approve_plan: Annotated[bool, typer.Option("--approve-plan", help="Wait for approval after planning.")] = False
    draft: given.Draft = False


Id = Annotated[str, typer.Argument(metavar="ID", help="The intake, as `septet intake list` shows it.")]


def _check_intake(options: IntakeOptions, **_: object) -> None:
    """See what is wrong with the options."""
    _intake(options)


@app.command()
@given.expand_options
@given.check_first(_check_intake)
async def add(operations: "Operations", *, options: IntakeOptions) -> CommandReply:
    """Start a work order for each open issue with a label, now and from now on.

    Example: septet intake add --repo https://github.com/o/r --label septet
    """
    answer = await operations.add_intake(_intake(options))
    return CommandReply.from_reply(answer, lambda: _show((answer.intake,)))


@app.command("list")
@given.give_operations
async def list_intakes(operations: "Operations") -> CommandReply:
    """List the intakes.

    Example: septet intake list
    """
    answer = await operations.intakes.list()
    return CommandReply.from_reply(answer, lambda: _show(answer.intakes))


@app.command()
@given.give_operations
async def remove(operations: "Operations", intake_id: Id) -> CommandReply:
    """Stop taking issues; work orders that have started continue.

    Example: septet intake remove septet-intake-o-r-1f0c9a2b-9c3d1e
    """
    answer = await operations.intakes.remove(intake_id)
    return CommandReply.from_reply(answer, lambda: say(f"{answer.removed} was removed."))


def _show(intakes: Sequence["IntakeView"]) -> None:
    from septet.system.preview import printable

    if not intakes:
        say("There are no intakes. Add one: septet intake add --repo REPO")
    for each in intakes:
        say(printable(f"{each.id}  {each.repository}  label {each.label}, every {each.every_seconds} s"))


def _intake(options: IntakeOptions) -> "IntakeInput":
    """Return what is to be taken.

    Raises:
        InvalidInputError: A value is wrong; the message names the option.
    """
    from pydantic import ValidationError

    from clients.repository_path import whole_path
    from septet.contracts.intake import IntakeInput
    from septet.contracts.wording import reason_of

    fields = {name: value for name, value in asdict(options).items() if value is not None}
    fields = {_FIELDS.get(name, name): value for name, value in fields.items()}
    try:
        return IntakeInput.model_validate({**fields, "repository": whole_path(options.repo)})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = str(first["loc"][0])
        option = next((name for name, own in _FIELDS.items() if own == field), field).replace("_", "-")
        raise InvalidInputError(f"--{option} {reason_of(first)}.") from error
