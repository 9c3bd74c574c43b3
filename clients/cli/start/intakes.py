"""`septet intake`: start a work order for each issue with a label."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from pydantic import ValidationError

from clients.cli.start.options import AddIntakeOptions, IntakeOptions, IntakesOptions, RemoveIntakeOptions
from clients.cli.terminal.output import say
from clients.cli.terminal.reply import CommandReply
from clients.starting.repository_path import whole_path
from septet.contracts.intake import IntakeInput, IntakeView
from septet.contracts.wording import reason_of
from septet.errors import InvalidInputError
from septet.system.masking import printable

_FIELDS: Final = {"repo": "repository", "every": "every_seconds"}
"""The names of the input's fields by the names of the options, where the two differ."""


async def add(options: AddIntakeOptions) -> CommandReply:
    """Start a work order for each open issue with a label, now and from now on."""
    intake = _intake(options.intake)
    operations = await options.server.connect()
    answer = await operations.starting.add_intake(intake)
    return CommandReply.from_reply(answer, lambda: _show((answer.intake,)))


async def list_intakes(options: IntakesOptions) -> CommandReply:
    """List the intakes."""
    operations = await options.server.connect()
    answer = await operations.intakes.list()
    return CommandReply.from_reply(answer, lambda: _show(answer.intakes))


async def remove(options: RemoveIntakeOptions) -> CommandReply:
    """Stop taking issues; work orders that have started continue."""
    operations = await options.server.connect()
    answer = await operations.intakes.remove(options.intake_id)
    return CommandReply.from_reply(answer, lambda: say(f"{answer.removed} was removed."))


def _show(intakes: Sequence[IntakeView]) -> None:
    if not intakes:
        say("There are no intakes. Add one: septet intake add --repo REPO")
    for each in intakes:
        say(printable(f"{each.id}  {each.repository}  label {each.label}, every {each.every_seconds} s"))


def _intake(options: IntakeOptions) -> IntakeInput:
    fields = {name: value for name, value in asdict(options).items() if value is not None}
    fields = {_FIELDS.get(name, name): value for name, value in fields.items()}
    try:
        return IntakeInput.model_validate({**fields, "repository": whole_path(options.repo)})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = str(first["loc"][0])
        wrong = next((name for name, own in _FIELDS.items() if own == field), field).replace("_", "-")
        raise InvalidInputError(f"--{wrong} {reason_of(first)}.") from error
