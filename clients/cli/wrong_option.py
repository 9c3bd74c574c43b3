"""What is wrong with an option or argument, in the words of the other faces: the parser's own name its library."""

from difflib import get_close_matches
from typing import Final

import typer
from pydantic import ValidationError

from septet.contracts.wording import reason_of

_ELSEWHERE: Final = {
    "--description": "--body",
    "--repository": "--repo",
    "--repository-url": "--repo",
    "--labels": "--label",
    "--steps": "--step",
    "--github-issue-number": "--issue",
}
"""What the other faces call these options."""


def message_of(error: typer.TyperException) -> str:
    """Return what is wrong with a command line, such as `--priority must be a whole number`."""
    cause, parameter = error.__cause__, getattr(error, "param", None)
    if (name := getattr(error, "option_name", "")) and (near := _likely_option(error, name)):
        return f"No such option: {name}. Did you mean {near}?"
    if not isinstance(cause, ValidationError) or parameter is None:
        return error.format_message()
    option = max(parameter.opts, key=len)
    name = option if option.startswith("-") else parameter.metavar or option.upper()
    reason = reason_of(cause.errors(include_url=False)[0]).rstrip(".")
    return f"{name} {reason}."


def _likely_option(error: typer.TyperException, name: str) -> str:
    """Return the option that another face's name, or a slip of the pen, stands for; or nothing."""
    context = getattr(error, "ctx", None)
    known = {option for each in context.command.params for option in each.opts} if context is not None else set()
    meant = _ELSEWHERE.get(name.replace("_", "-"), "")
    if meant in known:
        return meant
    bare = {each.lstrip("-"): each for each in getattr(error, "possibilities", None) or ()}
    return bare[near[0]] if (near := get_close_matches(name.lstrip("-"), bare)) else ""
