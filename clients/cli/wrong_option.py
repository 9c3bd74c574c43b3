"""What is wrong with an option or argument, in the words of the other faces: the parser's own name its library."""

import typer
from pydantic import ValidationError

from septet.contracts.wording import reason_of


def message_of(error: typer.TyperException) -> str:
    """Return what is wrong with a command line, such as `--priority must be a whole number`."""
    cause, parameter = error.__cause__, getattr(error, "param", None)
    if near := getattr(error, "possibilities", None):
        return f"No such option: {getattr(error, 'option_name', '')}. Did you mean {near[0]}?"
    if not isinstance(cause, ValidationError) or parameter is None:
        return error.format_message()
    option = max(parameter.opts, key=len)
    name = option if option.startswith("-") else parameter.metavar or option.upper()
    reason = reason_of(cause.errors(include_url=False)[0]).rstrip(".")
    return f"{name} {reason}."
