"""Command lines of `septet` in documents, held against the commands that there are."""

import shlex
from typing import Any

from typer.main import get_command

from clients.cli.main import app


def unknown_parts(line: str) -> set[str]:
    """Return what of a command line is no command, subcommand or option of `septet`; nothing is run."""
    program, *words = shlex.split(line)
    command: Any = get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    is_group = hasattr(command, "commands") and not (
        command.invoke_without_command and words and words[0].startswith("-")
    )
    if program != "septet" or is_group:
        return {line}
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    return {word for word in words if word.startswith("--")} - known
